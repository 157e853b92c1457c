"""`frostline bench`: the same holes for the same seed, honest sums, and what is said when it cannot run."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.models import tiny

from frostline import train
from frostline.errors import UsageError
from frostline.evals import bench, holes, loops, quality, reference
from frostline.evals.clock import clock_of
from frostline.models import registry

SOURCE = (
    "def area(width, height):\n    size = width * height\n    print(size, width)\n    return size\n"
)

# As the loops of the field are called: it writes the likeliest token into every slot at once.
LOOP = """
import torch

def generate(model, prompt, steps, gen_length, block_length, temperature, mask_id):
    noise = torch.full((1, gen_length), mask_id)
    x = torch.cat([prompt, noise], 1)
    x[:, prompt.shape[1]:] = model(x).logits[:, prompt.shape[1]:].argmax(-1)
    return x
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return Python files to cut holes from."""
    made = tmp_path_factory.mktemp("sources")
    for number in range(8):
        (made / f"m{number}.py").write_text(SOURCE.replace("size", f"size_{number}") * 3)
    return made


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make(tmp_path_factory.mktemp("tiny"))


def test_the_same_seed_cuts_the_same_holes_and_each_is_what_stood_there(folder: Path) -> None:
    cases = holes.cut(holes.in_folder(folder), 20, len, seed=3)
    assert cases == holes.cut(holes.in_folder(folder), 20, len, seed=3)
    assert cases != holes.cut(holes.in_folder(folder), 20, len, seed=4)
    for case in cases:
        assert case.before + case.text + case.after == Path(case.path).read_text()
        assert 4 <= len(case.text) <= 48


def test_holes_are_cut_from_nothing_that_the_embedded_model_learnt_from() -> None:
    sources = tomllib.loads((Path(train.__path__[0]) / "sources.toml").read_text())
    learnt = {one["name"].lower() for one in sources["package"]}
    assert not learnt & set(holes.PACKAGES)


def test_a_text_that_is_too_long_or_too_short_is_not_all_right() -> None:
    assert quality.accuracy([1, 2, 3], [1, 2, 3]) == 1
    assert quality.accuracy([1, 2], [1, 2, 3, 4]) == 0.5
    assert quality.accuracy([1, 2, 3, 4], [1, 2]) == 0.5
    assert quality.accuracy([2, 1], [1, 2]) == 0


def test_the_plain_loop_looks_at_everything_once_for_each_slot(model: Path, folder: Path) -> None:
    backend = registry.load(str(model), "cpu")
    cases = holes.cut(holes.in_folder(folder), 3, lambda text: len(backend.tokens.encode(text)))
    for case in cases:
        filled = loops.plain(backend, clock_of(backend.device), room=lambda _: 5)(case)
        assert filled.figures.forwards == 5
        assert filled.figures.tokens <= 5


def test_a_loop_of_the_field_runs_on_our_weights(model: Path, folder: Path, tmp_path: Path) -> None:
    backend = registry.load(str(model), "cpu")
    cases = holes.cut(holes.in_folder(folder), 2, lambda text: len(backend.tokens.encode(text)))
    loop = tmp_path / "loop.py"
    loop.write_text(LOOP)
    clock = clock_of(backend.device)
    theirs, ours = reference.rows(backend, loop, cases, clock, lambda _: None)
    assert theirs.name == "loop.py, text before only"
    assert theirs.holes == ours.holes == 2
    loop.write_text("x = 1\n")
    with pytest.raises(UsageError, match=r"loop\.py has no generate"):
        reference.rows(backend, loop, cases, clock, lambda _: None)
    with pytest.raises(UsageError, match="is no Python file"):
        reference.rows(backend, tmp_path / "none.py", cases, clock, lambda _: None)


def test_the_command_ends_with_one_object(model: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "frostline", "bench", "--quick", "--holes", "2", "--json"]
    command += ["--model", str(model), "--folder", str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["looks"][-1]["window"] == bench.WINDOW
    assert found["cached_step_speedup"] == pytest.approx(found["looks"][-1]["speedup"])
    names = [row["name"] for row in found["rows"]]
    assert names == ["plain loop", "Frostline", "whole steps", "16 slots", "true length"]
    assert all(row["holes"] == 2 for row in found["rows"])
    assert found["cancel_ms"] > 0


def test_too_few_files_are_a_sentence(model: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "frostline", "bench", "--quick", "--model", str(model)]
    ran = subprocess.run(
        [*command, "--folder", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert "there are no Python files under" in ran.stderr
    assert "Traceback" not in ran.stderr

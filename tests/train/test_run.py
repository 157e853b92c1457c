"""From nothing to weights: they learn, they are the same again, they go on, the product loads them."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from frostline.errors import BadPlace
from frostline.models import registry
from frostline.models.tokens import Tokens
from frostline.train import batches, data, folder, passes, run
from frostline.train.objective import Questions, Recipe
from frostline.train.sizes import SIZES


def questions_for(folder: Path) -> Questions:
    """Questions on source text that is not in the standard library: these tests and the recipe."""
    tokens = Tokens(folder)
    texts = [Path(module.__file__).read_text("utf-8") for module in (data, passes, run)]
    ids = [one for text in texts for one in (3, *tokens.encode(text))]
    return Questions(np.asarray(ids, dtype=np.uint16), tokens, Recipe())


def loss_of(model, questions: Questions, kind: str) -> float:
    rng = np.random.default_rng(7)
    with torch.no_grad():
        return float(passes.loss(model.eval(), questions.batch(kind, 24, 96, rng)))


@pytest.mark.parametrize("kind", ["holes", "scattered", "left"])
def test_a_minute_of_training_lowers_the_loss(trained: Path, kind: str):
    config = json.loads((trained / "config.json").read_text())
    fresh = passes.new(config, seed=0)
    learnt = passes.load(trained / "config.json", folder.read_weights(trained))
    questions = questions_for(trained)
    assert loss_of(learnt, questions, kind) < loss_of(fresh, questions, kind) - 0.7


def test_the_same_seed_gives_the_same_weights_also_when_stopped_between(
    command, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    out = tmp_path / "again"
    step = run.Run.step

    def stopping_step(self: run.Run) -> run.Report:
        report = step(self)
        if self.position.step == 25:
            raise KeyboardInterrupt
        return report

    monkeypatch.setattr(run.Run, "step", stopping_step)
    monkeypatch.setattr(run, "train", saves_every_step(run.train))
    with pytest.raises(KeyboardInterrupt):
        command("--size", "tiny", "--steps", "60", "--out", str(out))
    monkeypatch.undo()
    assert command("--resume", "--out", str(out)) == 0
    first, second = (load_file(one / "model.safetensors") for one in (trained, out))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def saves_every_step(train):
    """Return `train` with no time at all between two checkpoints."""
    from dataclasses import replace

    return lambda one, plan, out, tell: train(one, replace(plan, every=0.0), out, tell)


def test_the_product_loads_what_was_trained(trained: Path):
    backend = registry.load(str(trained), "cpu")
    assert backend.spec.shift == 1
    assert backend.spec.pad == 2
    assert backend.vocabulary == 1024


def test_weights_are_fp16_and_the_form_is_that_of_the_embedded_model(trained: Path):
    tensors = load_file(trained / "model.safetensors")
    assert {one.dtype for one in tensors.values()} == {torch.float16}
    assert "lm_head.weight" not in tensors
    form = json.loads((trained / "frostline.json").read_text())
    embedded = registry.folder_of("embedded") / "frostline.json"
    if embedded.is_file():
        assert form == json.loads(embedded.read_text())


def test_weights_in_pieces_are_loaded_by_the_product_and_trained_on(
    command, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(folder, "PIECE", 150_000)
    out = tmp_path / "pieces"
    options = ("--size", "tiny", "--steps", "2", "--seed", "3")
    assert command(*options, "--out", str(out)) == 0
    files = sorted(out.glob("*.safetensors"))
    assert len(files) > 2
    assert max(file.stat().st_size for file in files) < 200_000
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"].values()) == {file.name for file in files}
    own = registry.load(str(out), "cpu").model.state_dict()["model.norm.weight"]
    assert torch.equal(own.float(), folder.read_weights(out)["model.norm.weight"].float())
    assert command(*options, "--from", str(out), "--out", str(tmp_path / "on")) == 0


def test_helpers_ask_what_the_run_itself_would(trained: Path):
    plan = replace(SIZES["tiny"].plan, steps=8, seed=5)
    steps = batches.Steps(questions_for(trained), plan)
    own, ahead = (batches.from_step(steps, 3, helpers) for helpers in (0, 1))
    for _ in range(3):
        for one, other in zip(next(own), next(ahead), strict=True):
            assert one.kind == other.kind
            assert torch.equal(one.ids, other.ids)
            assert torch.equal(one.weights, other.weights)


def test_what_is_prepared_here_is_trained_on_a_machine_without_an_index_and_carried_back(
    command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(data, "PIECE", 100_000)
    monkeypatch.setattr(folder, "PIECE", 150_000)
    place, back = tmp_path / "data", tmp_path / "back"
    options = ("--size", "tiny", "--steps", "2", "--data", str(place))
    assert command(*options, "--prepare") == 0
    assert "fetches nothing" in capsys.readouterr().err
    shards = list(place.glob("*.bin"))
    assert len(shards) > 2
    assert max(file.stat().st_size for file in shards) <= 100_000

    def unreachable(*_: object) -> None:
        raise AssertionError("files were looked for")

    monkeypatch.setattr(data, "choose_files", unreachable)
    out = ("--out", str(tmp_path / "model"))
    # As the large size does it on a GPU: helpers make the batches, products are in bf16.
    changes = ("--set", "plan.helpers=1", "--precision", "bf16")
    assert command(*options, *changes, *out, "--export", str(back)) == 0
    assert max(file.stat().st_size for file in back.glob("*.safetensors")) < 200_000
    assert not (back / "checkpoint").exists()
    assert registry.load(str(back), "cpu").vocabulary == 1024
    assert command("--resume", *out, "--data", str(place), "--export", str(tmp_path / "again")) == 0
    files = [
        {file.name: file.read_bytes() for file in one.iterdir()}
        for one in (back, tmp_path / "again")
    ]
    assert files[0].keys() == files[1].keys()
    assert all(
        files[0][name] == files[1][name] for name in files[0] if name.endswith(".safetensors")
    )


def test_a_longer_run_goes_on_from_the_stable_phase(command, trained: Path, tmp_path: Path):
    import shutil

    out = tmp_path / "longer"
    shutil.copytree(trained, out)
    stable = json.loads((out / "stable" / "state.json").read_text())
    assert command("--resume", "--steps", "64", "--out", str(out)) == 0
    state = json.loads((out / "checkpoint" / "state.json").read_text())
    assert stable["step"] < 60
    assert state["step"] == 64
    per_step = state["tokens"] // state["step"]
    assert state["tokens"] == 64 * per_step


def test_weights_can_be_trained_on(command, trained: Path, tmp_path: Path):
    out = tmp_path / "on"
    assert command("--size", "tiny", "--steps", "3", "--from", str(trained), "--out", str(out)) == 0
    assert (out / "tokenizer.json").read_bytes() == (trained / "tokenizer.json").read_bytes()


def test_what_cannot_be_is_said(command, trained: Path, tmp_path: Path):
    with pytest.raises(BadPlace, match="holds a run already"):
        command("--size", "tiny", "--out", str(trained))
    with pytest.raises(BadPlace, match="there is no run"):
        command("--resume", "--out", str(tmp_path))


def test_the_card_says_what_was_learnt_from(trained: Path):
    card = (trained / "CARD.md").read_text()
    assert "standard library" in card
    assert "0.2 M parameters" in card


def test_training_ends_when_its_hours_are_used(
    command, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seconds = itertools.count()
    # A clock that is looked at when a step begins and when it ends: each step takes a second.
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))
    out = tmp_path / "hours"
    options = ("--size", "tiny", "--from", str(trained), "--out", str(out))
    assert command(*options, "--hours", str(6 / 3600)) == 0
    assert state_of(out) == (6, 6.0)
    assert command("--resume", "--out", str(out)) == 0
    assert state_of(out) == (6, 6.0)


def state_of(out: Path) -> tuple[int, float]:
    """Return the steps and seconds that a run's checkpoint stands at."""
    state = json.loads((out / "checkpoint" / "state.json").read_text())
    return state["step"], state["elapsed"]


def test_a_step_that_a_machine_slept_in_does_not_use_up_the_budget():
    assert run.spent(2.0, 0.0) == 2.0
    assert run.spent(4.0, 2.0) == 4.0
    assert run.spent(560.0, 2.0) == 16.0

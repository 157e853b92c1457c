"""Each published layout is loaded natively, computes what its makers' code computes, and can fill a hole."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from frostline.models import folder as folders
from frostline.models import registry, weights
from frostline.models.backend import MaskedBackend
from frostline.models.tokens import Tokens
from frostline.wire import messages as wire
from frostline.worker.engine import Engine
from models import published, reference

GOLDEN = Path(__file__).parents[2] / "fixtures" / "golden" / "dream"
BEFORE, AFTER = "def f(items):\n    total = ", "\n    return total\n"
SHIFTED = {"dream", "dream-coder", "diffucoder", "dreamon", "open-dcoder"}


@dataclass
class Window:
    """A window of tokens with slots in it."""

    ids: Tensor
    slots: Tensor


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Checkpoints of each layout, made when first asked for; not to be changed."""
    made: dict[str, Path] = {}
    root = tmp_path_factory.mktemp("published")

    def of(kind: str) -> Path:
        if kind not in made:
            made[kind] = {**published.FULL, **published.BLOCK}[kind](root / kind)
        return made[kind]

    return of


def window(backend: MaskedBackend) -> tuple[Window, Tensor]:
    """Return a window with five slots, and what stands in them: three masks and two letters."""
    before, after = backend.tokens.encode(BEFORE), backend.tokens.encode(AFTER)
    mask, letter = backend.spec.noise.id, backend.tokens.encode("x")[0]
    slots = torch.arange(len(before), len(before) + 5)
    return (
        Window(torch.tensor([*before, *[0] * 5, *after]), slots),
        torch.tensor([mask, letter, mask, mask, letter]),
    )


@pytest.mark.parametrize("kind", published.FULL)
def test_logits_are_those_of_a_plain_decoder(kind: str, checkpoints: Callable[[str], Path]) -> None:
    folder = checkpoints(kind)
    backend = registry.load(str(folder), "cpu")
    given, tokens = window(backend)
    ours = backend.open(given).predict(tokens)
    whole = given.ids.clone()
    whole[given.slots] = tokens
    theirs = reference.logits(folder, whole)
    shift = int(kind in SHIFTED)
    torch.testing.assert_close(ours, theirs[given.slots - shift], atol=1e-4, rtol=0)
    # Read at the other place, each is far off.
    assert (ours - theirs[given.slots - 1 + shift]).abs().max() > 0.1
    # What stands behind is seen: without it the answer is another.
    assert (
        ours - reference.logits(folder, whole[: int(given.slots[-1]) + 1])[given.slots - shift]
    ).abs().max() > 1e-2


def test_a_dream_computes_what_its_makers_code_gave() -> None:
    spec = folders.read(GOLDEN)
    assert (spec.noise.id, spec.shift, spec.attention) == (201, 1, "full")
    held = load_file(GOLDEN.with_suffix(".safetensors"))
    model = weights.load(GOLDEN, torch.device("cpu"), torch.float32, lambda _: None)
    tokens = Tokens(registry.folder_of("embedded"))
    off = 0.0
    for ids, logits in zip(held["input_ids"], held["logits"], strict=True):
        # All but the first token are slots, so that each is read at the one before.
        slots = torch.arange(1, len(ids))
        backend = MaskedBackend(GOLDEN, spec, tokens, model)
        ours = backend.open(Window(ids, slots)).predict(ids[slots])
        torch.testing.assert_close(ours, logits[:-1], atol=1e-4, rtol=0)
        unshifted = MaskedBackend(GOLDEN, msgspec.structs.replace(spec, shift=0), tokens, model)
        off = (unshifted.open(Window(ids, slots)).predict(ids[slots]) - logits[:-1]).abs().max()
        assert off > 0.1


@pytest.mark.parametrize("kind", published.FULL)
def test_a_hole_is_filled_and_nothing_else(kind: str, checkpoints: Callable[[str], Path]) -> None:
    backend = registry.load(str(checkpoints(kind)), "cpu")
    opened = []
    opening = backend.open

    def watched(canvas):
        opened.append((canvas, canvas.ids.clone()))
        return opening(canvas)

    backend.open = watched
    segments = (wire.Text(BEFORE), wire.Gap(0, room=8, multiline=False), wire.Text(AFTER))
    asked = wire.Infill("run", segments, decoding=wire.Decoding(threshold=None))
    *steps, done = Engine(backend).alone(asked)
    assert 1 < len(steps) <= 8
    assert done.outcome == "converged"
    # What is shown gets clearer, and the last step shows all of it decided.
    pieces = [step.gaps[0].pieces for step in steps]
    assert len(set(pieces)) > 1
    assert "open" in {piece.state for shown in pieces for piece in shown}
    assert {piece.state for piece in pieces[-1]} <= {"stable"}
    assert "".join(piece.text for piece in pieces[-1]) == done.gaps[0].text
    assert "\n" not in done.gaps[0].text
    for canvas, ids in opened:
        frozen = torch.ones(len(ids), dtype=torch.bool)
        frozen[canvas.slots] = False
        assert torch.equal(canvas.ids[frozen], ids[frozen])
        assert backend.tokens.spell(ids[frozen].tolist()).decode() == BEFORE + AFTER


@pytest.mark.parametrize("kind", published.FULL)
def test_what_a_checkpoint_can_do_is_read_from_its_files(
    kind: str, checkpoints: Callable[[str], Path]
) -> None:
    folder = checkpoints(kind)
    spec = folders.read(folder)
    marks = {one for one, _ in folders.Published(folder).added.values()}
    assert spec.noise.id in marks
    assert set(spec.banned) == marks
    assert spec.attention == "full"
    assert spec.length.kind == ("expand_delete" if kind == "dreamon" else "fixed")
    assert f"{spec.name} does not follow instructions." in spec.cannot


def test_the_mask_of_an_illada_is_token_5(checkpoints: Callable[[str], Path]) -> None:
    assert folders.read(checkpoints("illada")).noise.id == 5


def test_the_ids_of_a_checkpoint_are_its_own(tmp_path: Path) -> None:
    folder = published.dreamon(tmp_path)
    special = folders.Published(folder).special
    spec = folders.read(folder)
    assert spec.length.id == special["<|expand|>"]
    assert spec.length.delete == special["<|endoftext|>"]
    assert spec.begin_of_file == special["<|beginoftext|>"]
    published.changed(folder, "config.json", mask_token_id=special["<|expand|>"])
    with pytest.raises(folders.ModelUnusable, match="is the mask token and the tokenizer"):
        folders.read(folder)
    published.changed(folder, "config.json", mask_token_id=None)
    published.changed(folder, "tokenizer_config.json", mask_token=None)
    with pytest.raises(folders.ModelUnusable, match="names no mask token"):
        folders.read(folder)

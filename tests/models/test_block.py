"""Models that see blocks behind each other: what is behind quoted first, one block after the other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest
import torch
from torch import Tensor

from frostline.models import folder as folders
from frostline.models import registry
from frostline.models.block import BlockBackend, laid_out
from frostline.models.spec import Quote
from frostline.wire import messages as wire
from frostline.worker.engine import Engine
from models import published, reference

BEFORE, AFTER = "def f(items):\n    total = ", "\n    return total\n"


@dataclass(frozen=True)
class Window:
    """A window of tokens with slots in it."""

    ids: Tensor
    slots: Tensor


@pytest.fixture(scope="session")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], BlockBackend]:
    """Backends of each layout, loaded when first asked for; not to be changed."""
    made: dict[str, BlockBackend] = {}

    def of(kind: str) -> BlockBackend:
        if kind not in made:
            folder = published.BLOCK[kind](tmp_path_factory.mktemp(kind))
            made[kind] = registry.load(str(folder), "cpu")
        return made[kind]

    return of


def window(backend: BlockBackend, count: int = 9) -> Window:
    """Return a window with `count` slots between text, begun where a file begins."""
    start = backend.spec.begin_of_file
    before = [*([] if start is None else [start]), *backend.tokens.encode(BEFORE)]
    after = backend.tokens.encode(AFTER)
    slots = torch.arange(len(before), len(before) + count)
    return Window(torch.tensor([*before, *[0] * count, *after]), slots)


@pytest.mark.parametrize("kind", published.BLOCK)
def test_logits_are_those_of_a_plain_decoder_in_blocks(
    kind: str, backends: Callable[[str], BlockBackend]
) -> None:
    backend = backends(kind)
    given = window(backend)
    letter = backend.tokens.encode("x")[0]
    tokens = backend.noise(9)
    tokens[[1, 4]] = letter
    ours = backend.open(given).predict(tokens)
    ids, slots = laid_out(given, backend.spec, backend.tokens)
    ids[slots] = tokens
    block = backend.spec.block
    theirs = reference.logits(backend.folder, ids, reference.in_blocks(len(ids), block))[slots]
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)
    # With everything seen, or another length of blocks, each is far off.
    full = reference.logits(backend.folder, ids)[slots]
    other = reference.logits(backend.folder, ids, reference.in_blocks(len(ids), block * 2 + 1))
    assert (ours - other[slots]).abs().max() > 1e-2
    if len(ids) > block:
        assert (ours - full).abs().max() > 1e-2


@pytest.mark.parametrize("kind", published.BLOCK)
def test_what_is_kept_of_finished_blocks_is_exact(
    kind: str, backends: Callable[[str], BlockBackend]
) -> None:
    backend = backends(kind)
    given = window(backend, 12)
    run = backend.open(given)
    letters = torch.tensor(backend.tokens.encode("abcdefghijkl"))
    tokens = backend.noise(12)
    draw = torch.Generator().manual_seed(3)
    for slot in torch.randperm(12, generator=draw).tolist():
        tokens = tokens.clone()
        tokens[slot] = letters[slot]
        anew = backend.open(given).predict(tokens)
        torch.testing.assert_close(run.predict(tokens), anew, atol=1e-5, rtol=0)
    assert run.forwards == 12


def test_the_text_behind_is_quoted_before_the_text_ahead(
    backends: Callable[[str], BlockBackend],
) -> None:
    coder = backends("stable-diffcoder")
    special = folders.Published(coder.folder).special
    given = window(coder, 2)
    ids, slots = laid_out(given, coder.spec, coder.tokens)
    assert coder.spec.quote == Quote(
        (special["<[fim-suffix]>"],), (special["<[fim-prefix]>"],), (special["<[fim-middle]>"],)
    )
    assert ids.tolist() == [
        special["<[begin_of_sentence]>"],
        special["<[fim-suffix]>"],
        *coder.tokens.encode(AFTER),
        special["<[fim-prefix]>"],
        *coder.tokens.encode(BEFORE),
        special["<[fim-middle]>"],
        0,
        0,
    ]
    assert slots.tolist() == [len(ids) - 2, len(ids) - 1]
    sdar = backends("sdar")
    ids, _ = laid_out(window(sdar, 2), sdar.spec, sdar.tokens)
    assert sdar.tokens.spell(ids.tolist()[:-2]).decode() == f"{AFTER}\n\n{BEFORE}"


@pytest.mark.parametrize("kind", published.BLOCK)
def test_what_is_behind_is_seen_only_where_it_is_quoted(
    kind: str, backends: Callable[[str], BlockBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = backends(kind)
    given = window(backend)
    other = replace(given, ids=given.ids.clone())
    other.ids[-3] = backend.tokens.encode("q")[0]
    noise = backend.noise(9)

    def apart() -> float:
        return float(
            (backend.open(given).predict(noise) - backend.open(other).predict(noise)).abs().max()
        )

    assert apart() > 1e-3

    def unquoted(canvas: Window, *_: object) -> tuple[Tensor, Tensor]:
        return canvas.ids[: int(canvas.slots[-1]) + 1], canvas.slots

    monkeypatch.setattr("frostline.models.block.laid_out", unquoted)
    assert apart() == 0


def drafted(backend: BlockBackend, *segments: wire.Text | wire.Gap, **given: object) -> list:
    decoding = wire.Decoding(threshold=None, **given)
    return list(Engine(backend).alone(wire.Infill("run", segments, decoding=decoding)))


@pytest.mark.parametrize("kind", published.BLOCK)
def test_a_hole_is_filled_one_block_after_the_other(
    kind: str, backends: Callable[[str], BlockBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = backends(kind)
    runs, asked = [], []
    opening = backend.open

    def watched(canvas):
        run = opening(canvas)
        runs.append((run, canvas, canvas.ids.clone()))
        predicting = run.predict

        def predict(tokens):
            asked.append(tokens.clone())
            return predicting(tokens)

        run.predict = predict
        return run

    monkeypatch.setattr(backend, "open", watched)
    *steps, done = drafted(backend, wire.Text(BEFORE), wire.Gap(0, room=11), wire.Text(AFTER))
    assert done.outcome == "converged"
    assert 1 < len(steps) <= 11
    assert len({step.gaps for step in steps}) > 1
    ((run, canvas, ids),) = runs
    frozen = torch.ones(len(ids), dtype=torch.bool)
    frozen[canvas.slots] = False
    assert torch.equal(canvas.ids[frozen], ids[frozen])
    # While a slot of a block was open, all slots behind that block were. The last look is another matter.
    for tokens in asked[: len(steps)]:
        open = tokens == backend.spec.noise.id
        first = run.turns[open].min()
        assert bool(open[run.turns > first].all())
    # Not for want of blocks.
    assert len(run.turns.unique()) > 1 or backend.spec.block > 11


@pytest.mark.parametrize("kind", published.BLOCK)
def test_two_holes_are_filled_in_reading_order(
    kind: str, backends: Callable[[str], BlockBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = backends(kind)
    runs, asked = [], []
    opening = backend.open

    def watched(canvas):
        run = opening(canvas)
        runs.append(run)
        predicting = run.predict

        def predict(tokens):
            asked.append(tokens.clone())
            return predicting(tokens)

        run.predict = predict
        return run

    monkeypatch.setattr(backend, "open", watched)
    # More between them than a block of any of these models holds.
    between = "\n    other = [1, 2, 3, 4, 5, 6, 7, 8]\n    rest = "
    assert len(backend.tokens.encode(between)) > backend.spec.block
    *steps, done = drafted(
        backend,
        wire.Text(BEFORE),
        wire.Gap(0, room=6, multiline=False),
        wire.Text(between),
        wire.Gap(1, room=5, multiline=False),
        wire.Text(AFTER),
    )
    assert done.outcome == "converged"
    assert len(steps) <= 11
    assert all("\n" not in gap.text for gap in done.gaps)
    # Nothing of the second is decided before all of the first is.
    decided = [
        [any(piece.state != "open" for piece in gap.pieces) for gap in step.gaps] for step in steps
    ]
    whole = [all(piece.state != "open" for piece in step.gaps[0].pieces) for step in steps]
    assert all(first or not second for first, (_, second) in zip(whole, decided, strict=True))
    assert [second for _, second in decided].count(False) >= 1
    # The second sees what the first became; the first does not see the second.
    (run,) = runs
    last, letter = asked[len(steps) - 1].clone(), backend.tokens.encode("q")[0]
    said = run.predict(last)
    for changed, blind in ((0, slice(0, 0)), (10, slice(0, 6))):
        other = last.clone()
        other[changed] = letter
        apart = (run.predict(other) - said).abs().amax(-1)
        assert (apart[blind] == 0).all()
        assert (apart[6:] > 1e-4).any()


def test_what_is_quoted_leaves_room_for_what_stands_in_its_place(
    backends: Callable[[str], BlockBackend],
) -> None:
    backend = backends("sdar")
    spec = msgspec.structs.replace(backend.spec, max_context=64)
    letters = backend.tokens.encode("abcdefghijklmnopqrstuvwxyz")
    # 10 before, a hole of 2, 26 between, a hole of 2, 20 behind: 60, and 46 of them to be quoted.
    ids = torch.tensor([*letters[:10], 0, 0, *letters, 0, 0, *letters[:20]])
    given = Window(ids, torch.tensor([10, 11, 38, 39]))
    laid, slots = laid_out(given, spec, backend.tokens)
    assert len(laid) == 64
    quoted = len(laid) - 40 - len(backend.tokens.encode("\n\n"))
    # What is nearest to the first hole is kept of it.
    assert laid[:quoted].tolist() == [*letters, *letters[:20]][:quoted]
    assert laid[slots[0] - 10 :].tolist() == ids[:40].tolist()


def test_without_turns_later_blocks_would_settle_first(
    backends: Callable[[str], BlockBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = backends("sdar")
    segments = (wire.Text(BEFORE), wire.Gap(0, room=11), wire.Text(AFTER))
    in_turn = drafted(backend, *segments)[-1].gaps[0].text
    opening = backend.open

    def unordered(canvas):
        run = opening(canvas)
        run.turns = None
        return run

    monkeypatch.setattr(backend, "open", unordered)
    assert drafted(backend, *segments)[-1].gaps[0].text != in_turn


def test_what_such_a_model_cannot_do_is_said(backends: Callable[[str], BlockBackend]) -> None:
    spec = backends("sdar").spec
    assert "blocks of 4" in spec.sees
    assert any("does not see the text behind a hole where it stands" in one for one in spec.cannot)
    assert spec.pad == folders.Published(backends("sdar").folder).special["<|endoftext|>"]


def test_blocks_of_no_length_are_refused(tmp_path: Path) -> None:
    folder = published.sdar(tmp_path)
    spec = msgspec.structs.replace(folders.read(folder), block=0)
    (folder / "frostline.json").write_bytes(msgspec.json.encode(spec))
    with pytest.raises(folders.ModelUnusable, match="in a way that is not supported yet"):
        registry.load(str(folder), "cpu")
    (folder / "frostline.json").unlink()
    published.changed(folder, "config.json", block_size=None)
    with pytest.raises(folders.ModelUnusable, match="its block_size and its end of text"):
        folders.read(folder)

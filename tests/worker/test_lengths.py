"""A model that says how long a text gets: slots that divide and go, and no taking turns for ever."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from frostline.decoding.length import resized
from frostline.models import registry
from frostline.models.backend import Look, MaskedBackend
from frostline.wire import messages as wire
from frostline.worker import lengths
from frostline.worker.engine import Engine
from models import tiny

EXPAND, DELETE = tiny.PAD, tiny.END
# What the model wants in each slot, from the number of slots that there are.
Wants = Callable[[int], Sequence[str]]


def test_a_slot_that_divides_is_two_open_ones_and_one_that_goes_takes_what_is_open_behind_it() -> (
    None
):
    x, y, e, d = 7, 8, 1, 2
    tokens = torch.tensor([x, e, y, x, d, 0, y, 0])
    open = torch.tensor([0, 0, 0, 0, 0, 1, 0, 1], dtype=torch.bool)
    gap = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2])
    to = resized(tokens, open, gap, e, d)
    assert to is not None
    assert to.source.tolist() == [0, 1, 1, 2, 3, 6, 7]
    assert to.fresh.tolist() == [False, True, True, False, False, False, False]
    assert resized(tokens[:1], open[:1], gap[:1], e, d) is None


class Wishing:
    """A real engine on a tiny model that is told what to want."""

    def __init__(self, folder: Path, wants: Wants) -> None:
        backend = registry.load(str(folder), "cpu")
        assert isinstance(backend, MaskedBackend)
        self.backend, self.wants, self.counts = backend, wants, list[int]()
        looked = backend.look

        def look(looks: Sequence[Look]) -> list[Tensor]:
            looked(looks)
            return [self._logits(len(one.tokens)) for one in looks]

        backend.look = look  # type: ignore[method-assign]
        self.engine = Engine(backend)

    def _logits(self, slots: int) -> Tensor:
        self.counts.append(slots)
        logits = torch.full((slots, self.backend.vocabulary), -9.0)
        for slot, wish in enumerate(self.wants(slots)):
            token = {"+": EXPAND, "-": DELETE}.get(wish)
            at = self.backend.tokens.encode(wish)[0] if token is None else token
            # What changes the length is what it is surest of.
            logits[slot, at] = 5.0 - slot / 100 + (token is not None)
        return logits

    def draft(self, gap: wire.Gap, **decoding: object) -> tuple[list[wire.Step], wire.Done]:
        request = wire.Infill(
            "run",
            (wire.Text("a = "), gap, wire.Text("\nb = 2\n")),
            decoding=wire.Decoding(threshold=None, **decoding),  # type: ignore[arg-type]
        )
        *steps, done = self.engine.alone(request)
        assert isinstance(done, wire.Done)
        return [step for step in steps if isinstance(step, wire.Step)], done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    length = {"kind": "expand_delete", "id": EXPAND, "delete": DELETE}
    return tiny.make(tmp_path, length=length, banned=[tiny.MASK, tiny.BEGIN])


def test_a_text_that_needs_more_slots_gets_them(folder: Path) -> None:
    text = "abcdefgh"
    model = Wishing(folder, lambda slots: ["+"] * slots if slots < len(text) else text)
    steps, done = model.draft(wire.Gap(0, multiline=False))
    assert model.counts[0] == 4
    assert done.gaps[0].text == text
    assert done.figures.forwards == len(model.counts)
    assert done.figures.slots == len(text)
    assert steps[-1].step <= steps[-1].steps


def test_a_text_that_needs_fewer_loses_them(folder: Path) -> None:
    model = Wishing(folder, lambda slots: "ab--"[:slots])
    _, done = model.draft(wire.Gap(0, multiline=False))
    assert done.gaps[0].text == "ab"


def test_a_gap_that_the_model_empties_is_empty(folder: Path) -> None:
    _, done = Wishing(folder, lambda slots: "-" * slots).draft(wire.Gap(0, multiline=False))
    assert done.gaps[0].text == ""


def test_a_model_that_only_wants_more_comes_to_an_end(folder: Path) -> None:
    model = Wishing(folder, lambda slots: "+" * slots)
    steps, done = model.draft(wire.Gap(0, multiline=False))
    assert done.outcome == "converged"
    assert max(model.counts) <= 2 * lengths.MOST
    assert len(steps) <= steps[-1].steps


def test_a_model_that_takes_turns_comes_to_an_end(folder: Path) -> None:
    model = Wishing(folder, lambda slots: "+bc" if slots == 3 else "abc-"[-slots:])
    _, done = model.draft(wire.Gap(0, multiline=False))
    assert done.outcome == "converged"
    assert model.counts[:2] == [4, 3]
    assert max(model.counts[1:]) == 3, "what has deleted never expands again"


def test_a_length_that_the_user_set_is_kept(folder: Path) -> None:
    model = Wishing(folder, lambda slots: "+-" * (slots // 2))
    _, done = model.draft(wire.Gap(0, multiline=False, room=6))
    assert set(model.counts) == {6}
    assert done.figures.slots == 6


def test_a_budget_of_steps_is_kept_by_one_that_grows(folder: Path) -> None:
    model = Wishing(folder, lambda slots: "+" * slots)
    steps, done = model.draft(wire.Gap(0, multiline=False), steps=5)
    assert len(steps) == 5
    assert done.outcome == "converged"


def test_what_stood_still_is_not_taken_for_changed_when_others_divide(folder: Path) -> None:
    model = Wishing(folder, lambda slots: ["a", *"+" * (slots - 1)] if slots < 8 else "abcdefgh")
    _, done = model.draft(wire.Gap(0, multiline=False))
    assert done.gaps[0].text == "abcdefgh"
    assert done.figures.regret in (None, 0.0)

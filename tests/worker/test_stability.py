"""Slots are called stable by the rule, and it is counted how often that was wrong."""

import math
from collections.abc import Sequence

import pytest
import torch

from frostline.decoding.loop import Step
from frostline.worker.stability import Record, Stability

LETTERS = "·abcdefxyz"
PAD = 0
OPEN, DRAFT, STABLE = "odS"


def step(
    number: int,
    text: str,
    open: str,
    confidence: Sequence[float] | float = 0.95,
    drift: Sequence[float] | float = 0.0,
) -> Step:
    """Return a step: its guesses, and ░ under those that are open."""
    count = len(text)
    spread = [
        list(one) if isinstance(one, Sequence) else [one] * count for one in (confidence, drift)
    ]
    return Step(
        number,
        9,
        torch.tensor([LETTERS.index(letter) for letter in text]),
        torch.tensor([mark == "░" for mark in open]),
        torch.tensor(spread[0]),
        torch.tensor(spread[1]),
    )


class Watched:
    """A run's stability, with states as letters."""

    def __init__(self, gaps: str = "AAAA") -> None:
        names = sorted(set(gaps))
        self.stability = Stability(torch.tensor([names.index(name) for name in gaps]), PAD)

    def saw(self, given: Step) -> str:
        return "".join((OPEN, DRAFT, STABLE)[one] for one in self.stability.saw(given).tolist())


def test_nothing_is_stable_after_one_step() -> None:
    # A distribution that has no step before it has moved endlessly.
    assert Watched().saw(step(1, "abcd", "..░░", drift=math.inf)) == "ddoo"


def test_settled_is_stable_when_it_stood_for_two_steps() -> None:
    watched = Watched()
    assert watched.saw(step(1, "abcd", ".░░░", 0.6)) == "dooo"
    assert watched.saw(step(2, "abcd", ".░.░", 0.6)) == "SoSo"
    assert watched.saw(step(3, "axcd", "...░", 0.6)) == "SdSo"
    assert watched.saw(step(4, "axcd", "...░", 0.6)) == "SSSo"


def test_what_settled_for_want_of_better_is_not_called_stable() -> None:
    watched = Watched()
    watched.saw(step(1, "abcd", "..░░", [0.6, 0.4, 0.1, 0.1]))
    assert watched.saw(step(2, "abcd", "..░░", [0.6, 0.4, 0.1, 0.1])) == "Sdoo"
    assert watched.saw(step(3, "abcd", "....", [0.6, 0.4, 0.1, 0.1])) == "SSSS"


def test_open_is_stable_only_when_it_is_sure_still_and_nothing_before_it_is_open() -> None:
    def second(confidence: float = 0.9, drift: float = 0.01, text: str = "abcd") -> str:
        watched = Watched()
        watched.saw(step(1, "abcd", "..░░"))
        return watched.saw(step(2, text, "..░░", confidence, drift))

    # Only the first open slot: the text could end there, and the last one not be.
    assert second() == "SSSo"
    assert second(confidence=0.89) == "SSoo"
    assert second(drift=0.011) == "SSoo"
    assert second(text="abxd") == "SSoo"


def test_an_open_slot_of_another_gap_does_not_matter() -> None:
    watched = Watched("AABB")
    watched.saw(step(1, "abcd", "░.░."))
    assert watched.saw(step(2, "abcd", "░.░.")) == "SSSS"


def test_at_the_end_all_are_stable() -> None:
    watched = Watched()
    watched.saw(step(1, "abcd", "░░░░", 0.1))
    assert watched.saw(step(2, "xyz·", "....", 0.1)) == "SSSS"


def test_regret_counts_marks_that_were_wrong_and_lead_their_steps_to_the_end() -> None:
    watched = Watched()
    watched.saw(step(1, "abcd", ".░░░"))
    watched.saw(step(2, "abcd", ".░░░"))  # a and b are stable; b is wrong
    watched.saw(step(3, "axcd", "..░░"))
    watched.saw(step(4, "axcd", "...."))  # c was from step 3 on, d is at the very end
    record = watched.stability.record(4)
    assert record.regret == pytest.approx(1 / 4)
    assert record.lead == pytest.approx((2 + 2 + 1 + 0) / 4)


def test_a_mark_that_was_wrong_for_a_while_was_wrong() -> None:
    watched = Watched("A")
    for number, text in enumerate("aaxa", 1):
        watched.saw(step(number, text, "░"))
    assert watched.stability.record(4).regret == 1.0


def test_a_stable_slot_that_is_cut_off_is_regretted() -> None:
    watched = Watched("AA")
    watched.saw(step(1, "ab", "░."))
    watched.saw(step(2, "ab", "░."))
    watched.saw(step(3, "··", ".."))
    assert watched.stability.record(3) == Record(regret=1.0, lead=1.0)


def test_pads_count_in_neither() -> None:
    watched = Watched()
    watched.saw(step(1, "a···", "░..."))
    watched.saw(step(2, "a···", "░..."))
    watched.saw(step(3, "a···", "...."))
    assert watched.stability.record(3) == Record(regret=0.0, lead=1.0)


def test_without_a_mark_there_is_nothing_to_say() -> None:
    watched = Watched()
    assert watched.stability.record(0) == Record(None, None)
    watched.saw(step(1, "····", "...."))
    assert watched.stability.record(1) == Record(None, None)

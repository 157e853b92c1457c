"""Uniform noise: what is accepted, what is noised again, and when the text is done."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from decoding.letters import NAMES, Likely, ids, logits, rules
from frostline.decoding.loop import NothingFits
from frostline.decoding.renoise import Renoising, entropies

SURE: Likely = {"a": 0.9999}
UNSURE: Likely = {"b": 0.4, "c": 0.35}


@dataclass
class Settings:
    """How a checkpoint is sampled."""

    steps: int = 4
    t_min: float = 1.0
    t_max: float = 1.0
    # Less than the entropy of one slot that is sure, so that a step accepts one.
    entropy_bound: float = 0.001
    stability: int = 1
    confidence: float = 0.005


def renoising(
    start: str,
    open: Sequence[int] | None = None,
    noisy: Sequence[int] | None = None,
    first: int = 0,
    seed: int = 0,
    **settings: float,
) -> Renoising:
    """Return a canvas of letters; 1 for slots that are filled, and for those that begin as noise."""
    tokens = ids(start)

    def booleans(given: Sequence[int] | None) -> Tensor:
        return torch.tensor(given if given is not None else [1] * len(tokens)) > 0

    return Renoising(
        tokens,
        booleans(open),
        booleans(noisy),
        rules("A" * len(tokens)),
        Settings(**settings),  # type: ignore[arg-type]
        len(NAMES),
        torch.Generator().manual_seed(seed),
        first,
    )


def text(tokens: Tensor) -> str:
    return "".join(NAMES[one] for one in tokens.tolist())


def test_the_surest_are_accepted_and_all_others_get_new_noise() -> None:
    begun, renewed = set(), set()
    for seed in range(20):
        canvas = renoising("xxx", seed=seed)
        begun.add(int(canvas.question()[0]))
        step = canvas.answer(logits(SURE, UNSURE, UNSURE))
        assert step.open.tolist() == [False, True, True]
        assert text(canvas.question()[:1]) == "a"
        renewed.add(int(canvas.question()[1]))
        # Shown is the likeliest token of each, whatever stands there for the next look.
        assert text(step.tokens) == "abb"
    # Noise is any token, those that are no text as well.
    assert len(begun) > 5
    assert len(renewed) > 5


def test_the_joint_entropy_of_what_is_accepted_stays_within_the_bound() -> None:
    seen = logits(UNSURE, UNSURE, {"a": 0.97}, {"a": 0.95})
    small, large, _ = entropies(logits({"a": 0.97}, {"a": 0.95}, UNSURE)).tolist()
    # The largest of them is not counted, so one is always accepted.
    for bound, open in (
        (small - 0.05, [1, 1, 0, 1]),
        (small + 0.05, [1, 1, 0, 0]),
        (small + large + 0.05, [0, 1, 0, 0]),
    ):
        canvas = renoising("xxxx", entropy_bound=bound)
        assert canvas.answer(seen).open.tolist() == open


def test_nothing_that_was_accepted_is_settled() -> None:
    canvas = renoising("xx")
    canvas.answer(logits(SURE, UNSURE))
    step = canvas.answer(logits(UNSURE, SURE))
    assert step.open.tolist() == [True, False]
    assert text(step.tokens) == "ba"


def test_a_slot_that_is_not_open_stays_and_counts_in_nothing() -> None:
    # Were it counted, it would be the surest one, and the bound be spent on it.
    seen = logits({"b": 1.0}, {"a": 0.6, "c": 0.39}, UNSURE)
    canvas = renoising("dxx", open=[0, 1, 1], entropy_bound=0.01)
    for _ in range(2):
        step = canvas.answer(seen)
        assert step.open.tolist() == [False, False, True]
        assert text(step.tokens[:1]) == "d"
        assert text(canvas.question()[:1]) == "d"
        # It is told as known, whatever the model thinks of it.
        assert canvas.believed is not None
        assert canvas.believed[0].softmax(-1)[NAMES.index("d")] == 1
    # Were it counted, the mean would be sure enough to stop.
    mean = float(entropies(seen[1:]).mean())
    assert not canvas.converged
    whole = renoising("xxx", confidence=mean * 0.9)
    held = renoising("dxx", open=[0, 1, 1], confidence=mean * 0.9)
    for one in (whole, held):
        one.answer(seen)
        one.answer(seen)
    assert (whole.done, held.done) == (True, False)


def test_it_stops_when_the_text_stays_the_same_and_is_sure() -> None:
    canvas = renoising("xx", confidence=0.1)
    canvas.answer(logits(SURE, SURE))
    assert not canvas.done
    canvas.answer(logits({"b": 0.9999}, SURE))
    assert not canvas.done
    step = canvas.answer(logits({"b": 0.9999}, SURE))
    assert canvas.done
    assert canvas.converged
    assert not step.open.any()
    assert text(step.tokens) == "ba"


@pytest.mark.parametrize("stability", [0, 1, 2])
def test_it_has_to_stay_the_same_for_so_many_steps(stability: int) -> None:
    canvas = renoising("xx", stability=stability, confidence=0.1)
    for _ in range(stability + 1):
        assert not canvas.done
        canvas.answer(logits(SURE, SURE))
    assert canvas.done


def test_unsure_it_ends_when_its_steps_are_spent() -> None:
    canvas = renoising("xx", steps=3)
    for _ in range(3):
        assert not canvas.done
        step = canvas.answer(logits(UNSURE, UNSURE))
    assert canvas.done
    assert not canvas.converged
    assert (step.step, step.steps) == (3, 3)
    assert not step.open.any()
    assert text(step.tokens) == "bb"


def test_it_gets_cooler_with_each_step() -> None:
    seen, canvas = logits(UNSURE), renoising("x", steps=4, t_max=0.8, t_min=0.4)

    def told(canvas: Renoising) -> Tensor:
        """Return what a model of the letters a to d is told that it thought, by what it did think."""
        canvas.answer(seen)
        assert canvas.believed is not None
        return (seen / canvas.believed)[0, 2:6]

    for temperature in (0.8, 0.7, 0.6, 0.5):
        torch.testing.assert_close(told(canvas), torch.full((4,), temperature))
    later = renoising("x", steps=4, t_max=0.8, t_min=0.4, first=3)
    torch.testing.assert_close(told(later), torch.full((4,), 0.5))
    assert later.done


def test_what_does_not_begin_as_noise_goes_back_to_what_it_was() -> None:
    canvas = renoising("dcxx", noisy=[0, 0, 1, 1])
    assert text(canvas.question()[:2]) == "dc"
    step = canvas.answer(logits(UNSURE, SURE, SURE, UNSURE))
    # One is accepted as another token, the other is kept though the model would rather write "b".
    assert text(canvas.question()[:2]) == "da"
    assert text(step.tokens) == "daab"
    canvas.answer(logits(UNSURE, UNSURE, SURE, UNSURE))
    assert text(canvas.question()[:2]) == "dc"


def test_a_slot_is_still_only_where_it_was_fed_what_it_says() -> None:
    canvas = renoising("ax", noisy=[0, 1], confidence=1e-9)
    canvas.fed = ids("ab")
    canvas.answer(logits(SURE, SURE))
    canvas.fed = ids("ab")
    step = canvas.answer(logits(SURE, SURE))
    assert float(step.drift[0]) == pytest.approx(0.0, abs=1e-6)
    assert float(step.drift[1]) == float("inf")


def test_what_is_no_text_is_never_drawn_nor_shown() -> None:
    canvas = renoising("xx", steps=30)
    while not canvas.done:
        step = canvas.answer(logits({"░": 0.5, "·": 0.49}, {"░": 0.5, "b": 0.3}))
        assert not set(text(step.tokens)) & {"░", "·"}
        accepted = canvas.question()[~step.open]
        if not canvas.done:
            assert not set(text(accepted)) & {"░", "·"}


def test_where_nothing_fits_it_says_so() -> None:
    with pytest.raises(NothingFits):
        renoising("x").answer(torch.full((1, len(NAMES)), float("nan")))

"""The loop: what is settled stays, it always ends, and its numbers are numbers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from decoding.letters import MASK, NAMES, denoise, ids, logits, rules, says, shown
from frostline.decoding import loop
from frostline.decoding.choose import ORDERS, Choice
from frostline.decoding.loop import NothingFits, Predict, divergence, likelihood, viewed
from frostline.decoding.schedule import SCHEDULES, linear


def asked(asking: loop.Asking, predict: Predict) -> Tensor:
    """Return what comes of `asking` when a model answers it."""
    try:
        tokens = next(asking)
        while True:
            tokens = asking.send(predict(tokens))
    except StopIteration as end:
        found: Tensor = end.value
        return found


def random_model(seed: int, slots: int) -> Predict:
    """Return a model that thinks something else in every step."""
    generator = torch.Generator().manual_seed(seed)
    return lambda _: torch.randn(slots, len(NAMES), generator=generator) * 3


@given(st.data())
def test_what_is_settled_stays_and_the_loop_ends(data: st.DataObject) -> None:
    gaps = "A" * data.draw(st.integers(1, 6)) + "B" * data.draw(st.integers(0, 6))
    canvas = "".join(data.draw(st.sampled_from(["░", "░", "a", "\n", "x"])) for _ in gaps)
    seen: list[Tensor] = []
    model = random_model(data.draw(st.integers(0, 99)), len(gaps))

    def predict(tokens: Tensor) -> Tensor:
        seen.append(tokens.clone())
        return model(tokens)

    steps = denoise(
        predict,
        canvas,
        rules(gaps, pad=data.draw(st.booleans()), one_line=data.draw(st.sampled_from(["", "A"]))),
        order=data.draw(st.sampled_from(sorted(ORDERS))),
        threshold=data.draw(st.sampled_from([None, 0.3, 0.9])),
        entropy_bound=data.draw(st.sampled_from([None, 0.5])),
        schedule=data.draw(st.sampled_from(sorted(SCHEDULES))),
        steps=data.draw(st.integers(1, 15)),
        temperature=data.draw(st.sampled_from([0.0, 1.0])),
    )
    open, tokens = ids(canvas) == MASK, ids(canvas)
    assert len(steps) <= int(open.sum())
    assert not steps or not steps[-1].open.any()
    for asked, step in zip(seen, steps, strict=True):
        # The model is shown what is settled, and noise elsewhere.
        assert torch.equal(asked, torch.where(open, MASK, tokens))
        assert torch.equal(step.tokens[~open], tokens[~open])
        assert not (step.open & ~open).any()
        assert (open & ~step.open).any()
        assert torch.isfinite(step.confidence).all()
        assert not torch.isnan(step.drift).any()
        assert (step.drift[~open] == 0).all()
        open, tokens = step.open, step.tokens


def test_a_canvas_with_nothing_open_takes_no_step() -> None:
    assert denoise(says({"a": 0.9}, {"a": 0.9}), "bc", steps=3) == []


def test_the_mask_among_frozen_tokens_is_just_a_token() -> None:
    # Whether a slot is open is not read off its token.
    tokens, open = ids("░░"), torch.tensor([False, True])
    noise = torch.full_like(tokens, MASK)
    run = loop.Denoising(tokens, open, noise, rules("AA"), Choice(), linear, 2)
    steps = list(loop.denoise(run, says({"a": 0.9}, {"b": 0.9})))
    assert [step.tokens.tolist() for step in steps] == [[MASK, NAMES.index("b")]]


def test_greedy_is_the_same_whatever_the_seed_and_sampling_repeats_with_it() -> None:
    model = says(*[{"a": 0.3, "b": 0.3, "c": 0.3}] * 8)
    canvas = "░" * 8
    drawn = [shown(denoise(model, canvas, temperature=1.0, seed=seed))[-1] for seed in range(8)]
    again = [shown(denoise(model, canvas, temperature=1.0, seed=seed))[-1] for seed in range(8)]
    assert drawn == again
    assert len(set(drawn)) > 1
    greedy = {shown(denoise(model, canvas, seed=seed))[-1] for seed in range(8)}
    assert len(greedy) == 1


def test_sampling_takes_each_token_as_often_as_the_model_would() -> None:
    model = says(*[{"a": 0.7, "b": 0.3}] * 200)
    text = shown(denoise(model, "░" * 200, temperature=1.0, threshold=0.0))[-1]
    assert 110 <= text.count("a") <= 170
    assert text.count("a") + text.count("b") >= 198
    cold = shown(denoise(model, "░" * 200, temperature=0.05, threshold=0.0))[-1]
    assert cold == "a" * 200


def test_confidence_is_the_models_own_whatever_the_temperature() -> None:
    model = says({"a": 0.7, "b": 0.3})
    for temperature in (0.0, 0.1, 3.0):
        step = denoise(model, "░", temperature=temperature)[-1]
        expected = {"a": 0.7, "b": 0.3}[shown([step])[0]]
        assert step.confidence.tolist() == [pytest.approx(expected, abs=1e-4)]


def test_one_possible_token_is_certain() -> None:
    row = torch.full((1, len(NAMES)), float("-inf"))
    row[0, NAMES.index("c")] = -5.0
    for temperature in (0.0, 1.0):
        for order in ORDERS:
            steps = denoise(lambda _: row, "░", temperature=temperature, order=order)
            assert shown(steps) == ["c"]
            assert steps[0].confidence.tolist() == [1.0]
    views = viewed(torch.log_softmax(row, -1), 0.0, None)
    assert [views.p1.item(), views.p2.item(), views.entropy.item()] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("bad", [float("-inf"), float("nan"), float("inf")])
def test_a_slot_without_a_possible_token_ends_the_run(bad: float) -> None:
    rows = logits({"a": 0.9}, {"b": 0.9})
    rows[1] = bad
    with pytest.raises(NothingFits):
        denoise(lambda _: rows, "░░")
    # Where text stands already, the model's opinion is not asked.
    assert shown(denoise(lambda _: rows, "░d")) == ["ad"]


def test_drift_is_how_far_a_distribution_moved() -> None:
    heads, tails = (torch.tensor([[p, 1 - p]]).log() for p in (0.5, 0.9))
    assert divergence(heads, None).tolist() == [math.inf]
    assert divergence(heads, heads).tolist() == [0.0]
    expected = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)
    assert divergence(heads, tails).item() == pytest.approx(expected, abs=1e-5)


def test_drift_stays_a_number_where_something_was_or_is_impossible() -> None:
    sure = torch.tensor([[0.0, float("-inf")]])
    torn = torch.tensor([[0.5, 0.5]]).log()
    assert divergence(sure, torn).item() == pytest.approx(math.log(2), abs=1e-5)
    assert 10 < divergence(torn, sure).item() < math.inf


def test_likelihood_sees_every_other_token() -> None:
    text = ids("abcd")
    seen: list[list[int]] = []

    def predict(tokens: Tensor) -> Tensor:
        seen.append(tokens.tolist())
        return logits({"a": 0.5}, {"b": 0.25}, {"a": 0.9, "c": 0.01}, {"d": 1.0})

    found = asked(likelihood(text, torch.full((4,), MASK)), predict)
    assert ["".join(NAMES[one] for one in tokens) for tokens in seen] == ["░b░d", "a░c░"]
    expected = [math.log(p) for p in (0.5, 0.25, 0.01, 1.0)]
    assert found.tolist() == pytest.approx(expected, abs=1e-3)


def test_likelihood_of_one_token_takes_one_pass() -> None:
    passes: list[Tensor] = []

    def predict(tokens: Tensor) -> Tensor:
        passes.append(tokens)
        return logits({"a": 0.5})

    asked(likelihood(ids("a"), ids("░")), predict)
    assert len(passes) == 1

"""Who settles first, and who may settle early."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding.letters import denoise, rules, says, shown
from frostline.decoding.choose import surest, within_entropy

SURE = {"a": 0.95}, {"b": 0.6}, {"c": 0.97}, {"d": 0.4}
# The likeliest guess of all, with a close rival; two that share everything; one with many rivals.
TORN = {"a": 0.52, "b": 0.48}, {"b": 0.4}, {"c": 0.3}, {"d": 0.45}


def test_by_confidence_the_likeliest_guess_settles_first() -> None:
    assert shown(denoise(says(*TORN), order="confidence")) == ["a░░░", "a░░d", "ab░d", "abcd"]


def test_by_margin_the_clearest_lead_settles_first() -> None:
    assert shown(denoise(says(*TORN), order="margin")) == ["░░░d", "░b░d", "░bcd", "abcd"]


def test_by_entropy_the_fewest_rivals_settle_first() -> None:
    model = says({"a": 0.6}, {"b": 0.5, "c": 0.49}, {"c": 0.3}, {"d": 0.45, "x": 0.45})
    assert shown(denoise(model, order="entropy")) == ["░b░░", "░b░d", "ab░d", "abcd"]
    assert shown(denoise(model, order="confidence")) == ["a░░░", "ab░░", "ab░d", "abcd"]


def test_on_a_tie_the_earlier_slot_settles_first() -> None:
    model = says(*[{"a": 0.5}] * 4)
    for order in ("confidence", "margin", "entropy"):
        assert shown(denoise(model, order=order)) == ["a░░░", "aa░░", "aaa░", "aaaa"]


def test_all_at_or_above_the_threshold_settle_at_once() -> None:
    assert shown(denoise(says(*SURE), threshold=0.9)) == ["a░c░", "abc░", "abcd"]
    assert shown(denoise(says(*SURE), threshold=0.3)) == ["abcd"]


def test_below_the_threshold_the_best_settles_all_the_same() -> None:
    assert shown(denoise(says(*SURE), threshold=1.0)) == ["░░c░", "a░c░", "abc░", "abcd"]


def test_within_the_entropy_bound_the_surest_settle_at_once() -> None:
    wide = denoise(says(*SURE), entropy_bound=100.0)
    assert shown(wide) == ["abcd"]
    some = denoise(says(*SURE), entropy_bound=0.4)
    assert shown(some) == ["a░c░", "abc░", "abcd"]
    none = denoise(says(*SURE), entropy_bound=0.0)
    assert shown(none) == ["░░c░", "a░c░", "abc░", "abcd"]


def test_the_entropy_bound_leaves_out_the_largest_term() -> None:
    entropy = torch.tensor([0.3, 0.1, 0.2, 0.9])
    ready = torch.tensor([True, True, True, True])
    # 0.1 + 0.2 are in bound, so a third may come; with it the sum is 0.6.
    assert within_entropy(entropy, ready, 0.35).tolist() == [True, True, True, False]


def test_a_settled_slot_is_never_chosen_in_the_place_of_an_impossible_one() -> None:
    ready = torch.tensor([False, True, False, True])
    scores = torch.full((4,), float("-inf"))
    assert surest(scores, ready, 1).tolist() == [False, True, False, False]
    assert surest(scores, ready, 9).tolist() == ready.tolist()


@given(st.lists(st.tuples(st.floats(allow_nan=True), st.booleans()), min_size=1), st.integers(1, 9))
def test_the_surest_are_as_many_as_asked_and_all_ready(
    slots: list[tuple[float, bool]], count: int
) -> None:
    scores = torch.tensor([score for score, _ in slots])
    ready = torch.tensor([one for _, one in slots])
    chosen = surest(scores, ready, count)
    assert int(chosen.sum()) == min(count, int(ready.sum()))
    assert not (chosen & ~ready).any()


def test_several_gaps_share_the_schedule_and_settle_together() -> None:
    model = says({"a": 0.9}, {"b": 0.3}, {"c": 0.8}, {"d": 0.7})
    assert shown(denoise(model, given=rules("AABB"), steps=2)) == ["a░c░", "abcd"]

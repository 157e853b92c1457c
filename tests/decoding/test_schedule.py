"""The budget of steps is kept: something settles in each, and everything by the last."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.letters import denoise, says, shown
from frostline.decoding.schedule import SCHEDULES, cosine, due, linear


def settled_by_step(schedule: str, slots: int, steps: int) -> list[int]:
    counts, left = [], slots
    for step in range(steps):
        counts.append(due(SCHEDULES[schedule], step, steps, slots, left))
        left -= counts[-1]
    return counts


def test_linear_settles_evenly_and_cosine_few_at_first() -> None:
    assert settled_by_step("linear", 16, 4) == [4, 4, 4, 4]
    assert settled_by_step("cosine", 16, 4) == [2, 3, 5, 6]
    assert settled_by_step("linear", 5, 5) == [1, 1, 1, 1, 1]


def test_a_schedule_goes_from_all_open_to_none() -> None:
    for schedule in (linear, cosine):
        assert schedule(0.0) == 1.0
        assert schedule(1.0) == pytest.approx(0.0)


@given(st.sampled_from(sorted(SCHEDULES)), st.integers(1, 200), st.integers(1, 200))
def test_what_is_due_sums_to_all_slots(schedule: str, slots: int, steps: int) -> None:
    counts = settled_by_step(schedule, slots, steps)
    assert sum(counts) == slots
    # At least one a step while there is any.
    assert all(counts[: min(slots, steps)])
    assert not any(counts[min(slots, steps) :])


@given(st.integers(1, 50), st.integers(1, 50), st.data())
def test_slots_that_settled_early_are_no_longer_due(
    slots: int, steps: int, data: st.DataObject
) -> None:
    left, step = slots, 0
    while left:
        count = due(cosine, step, steps, slots, left)
        assert 1 <= count <= left
        left -= data.draw(st.integers(count, left), label="settled, with the sure ones")
        step += 1
    assert step <= min(slots, steps)
    assert due(cosine, step, steps, slots, 0) == 0


def test_fewer_steps_than_slots_settle_several_at_once() -> None:
    model = says({"a": 0.5}, {"b": 0.9}, {"c": 0.7}, {"d": 0.6})
    assert shown(denoise(model, steps=2)) == ["░bc░", "abcd"]
    assert shown(denoise(model, steps=1)) == ["abcd"]
    steps = denoise(model, steps=9)
    assert len(steps) == 4
    assert {step.steps for step in steps} == {9}

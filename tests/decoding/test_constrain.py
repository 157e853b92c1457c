"""What a slot may become: text, of one line where it has to be, beginning as it must."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding.letters import NAMES, SPELLED, denoise, logits, rules, says, shown
from frostline.decoding.loop import NothingFits, Step


def spelled(step: Step) -> bytes:
    return b"".join(SPELLED[token] for token in step.tokens.tolist())


def test_what_is_no_text_never_stands_in_a_slot() -> None:
    model = says({"░": 0.9, "a": 0.05}, {"·": 0.9, "b": 0.05}, {"░": 0.5, "·": 0.4}, {"d": 0.2})
    assert shown(denoise(model))[-1][:2] == "ab"
    drawn = [denoise(model, temperature=3.0, seed=seed)[-1] for seed in range(20)]
    assert not any({"░", "·"} & set(shown([step])[0]) for step in drawn)


def test_a_gap_in_one_line_never_grows_a_line_end() -> None:
    model = says(*[{"\n": 0.8, "c": 0.1}] * 4)
    assert shown(denoise(model, given=rules("AABB", one_line="A")))[-1] == "cc\n\n"
    assert shown(denoise(model, given=rules("AABB", one_line="AB")))[-1] == "cccc"
    drawn = denoise(model, given=rules("AAAA", one_line="A"), temperature=5.0)
    assert "\n" not in shown(drawn)[-1]


def test_a_required_beginning_is_spelled_with_one_token_or_with_several() -> None:
    longest = says({"abc": 0.5}, {"x": 0.9}, {"x": 0.9}, {"x": 0.9})
    pieces = says({"a": 0.5, "abc": 0.1}, {"b": 0.5}, {"x": 0.9, "c": 0.05}, {"x": 0.9})
    given = rules("AAAA", required={"A": b"abc"})
    assert spelled(denoise(longest, given=given)[-1]) == b"abcxxx"
    assert spelled(denoise(pieces, given=given)[-1]) == b"abcx"


def test_a_token_may_go_beyond_the_required_beginning() -> None:
    model = says({"abc": 0.5, "a": 0.2}, {"x": 0.9}, {"x": 0.9}, {"x": 0.9})
    steps = denoise(model, given=rules("AAAA", required={"A": b"ab"}))
    assert spelled(steps[-1]) == b"abcxxx"


def test_a_required_beginning_settles_first_and_from_the_left() -> None:
    model = says({"a": 0.2}, {"b": 0.3}, {"x": 0.9}, {"x": 0.95})
    steps = denoise(model, given=rules("AAAA", required={"A": b"ab"}), threshold=0.5)
    assert shown(steps)[0] == "a░░░"
    assert spelled(steps[-1]) == b"abxx"


def test_other_gaps_settle_while_one_spells_its_beginning() -> None:
    model = says({"a": 0.2}, {"b": 0.3}, {"x": 0.9}, {"x": 0.95})
    steps = denoise(model, given=rules("AABB", required={"A": b"ab"}), threshold=0.8)
    assert shown(steps) == ["░░xx", "a░xx", "abxx"]


def test_a_character_of_several_bytes_is_spelled_byte_by_byte() -> None:
    model = says({"Ã": 0.1, "x": 0.9}, {"x": 0.9}, {"x": 0.9}, {"x": 0.9})
    steps = denoise(model, given=rules("AAAA", required={"A": "éa".encode()}))
    assert spelled(steps[-1]).decode() == "éax"


def test_a_short_gap_takes_tokens_that_leave_room_for_the_rest() -> None:
    # The model would rather have single letters, and with two slots that cannot end well.
    model = says({"a": 0.9, "ab": 0.01, "abc": 0.001}, {"b": 0.9})
    steps = denoise(model, "░░", rules("AA", required={"A": b"abc"}))
    assert spelled(steps[-1]) == b"abc"
    steps = denoise(says({"a": 0.9}), "░", rules("A", required={"A": b"abc"}))
    assert spelled(steps[-1]) == b"abc"


def test_a_gap_with_too_few_slots_is_filled_and_stays_unfinished() -> None:
    steps = denoise(says({"a": 0.9}, {"x": 0.9}), "░░", rules("AA", required={"A": b"abcd" * 3}))
    assert len(steps) == 2
    assert (b"abcd" * 3).startswith(spelled(steps[-1]))


def test_a_pad_never_stands_in_a_required_beginning() -> None:
    model = says(*[{"·": 0.99}] * 4)
    steps = denoise(model, given=rules("AAAA", pad=True, required={"A": b"ab"}), steps=1)
    assert spelled(steps[-1]) == b"ab"
    assert shown(steps)[-1].endswith("·")


def test_settled_text_counts_towards_the_beginning() -> None:
    model = says({"x": 0.9}, {"x": 0.9}, {"x": 0.9}, {"x": 0.9})
    steps = denoise(model, "a░░d", rules("AAAA", required={"A": b"abc"}))
    assert spelled(steps[-1]) == b"abcd"


def test_a_beginning_that_nothing_spells_is_said_and_not_made_up() -> None:
    for beginning in (b"\r", b"ay", "日".encode()):
        with pytest.raises(NothingFits):
            denoise(says(*[{"a": 0.5}] * 4), given=rules("AAAA", required={"A": beginning}))
    # A line end is required where none may be.
    given = rules("AAAA", one_line="A", required={"A": b"\n"})
    with pytest.raises(NothingFits):
        denoise(says(*[{"a": 0.5}] * 4), given=given)


def test_logits_are_not_changed_in_place() -> None:
    before = logits(*[{"·": 0.5}] * 2)
    after = before.clone()
    given = rules("AA", pad=True, one_line="A", required={"A": b"ab"})
    given.possible(after, torch.tensor([0, 2]), torch.tensor([True, False]))
    assert torch.equal(before, after)


@given(st.data())
def test_a_beginning_with_room_enough_is_always_spelled(data: st.DataObject) -> None:
    required = b"".join(data.draw(st.lists(st.sampled_from(SPELLED[2:]), min_size=1, max_size=4)))
    text = required
    fewest = 0
    while text:
        # Spelled from the left by the longest piece: never more slots than the canvas has.
        piece = max((one for one in SPELLED if one and text.startswith(one)), key=len)
        text, fewest = text[len(piece) :], fewest + 1
    slots = fewest + data.draw(st.integers(0, 2))
    likely = st.dictionaries(st.sampled_from(NAMES), st.floats(0.01, 0.15), max_size=6)
    steps = denoise(
        says(*(data.draw(likely) for _ in range(slots))),
        "░" * slots,
        rules("A" * slots, required={"A": required}),
        temperature=data.draw(st.sampled_from([0.0, 2.0])),
        threshold=data.draw(st.sampled_from([None, 0.1])),
    )
    assert spelled(steps[-1]).startswith(required)

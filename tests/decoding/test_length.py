"""How long a text becomes: pads end it, and only what is behind them."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding.letters import MASK, PAD, denoise, ids, logits, rules, says, shown
from frostline.decoding.length import leftmost_open, may_end, near, padded_out

TWO_GAPS = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])


def marks(canvas: str) -> torch.Tensor:
    return torch.tensor([letter == "x" for letter in canvas])


def test_the_first_open_slot_of_each_gap() -> None:
    open = marks("..xxx..x")
    assert leftmost_open(open, TWO_GAPS).tolist() == marks("..x.x...").tolist()


def test_near_is_from_the_first_open_slot_on_within_its_gap() -> None:
    first = marks("..x.x...")
    assert near(first, TWO_GAPS, 3).tolist() == marks("..xxxxx.").tolist()
    assert near(first, TWO_GAPS, 1).tolist() == first.tolist()
    assert near(first, TWO_GAPS, 99).tolist() == marks("..xxxxxx").tolist()


def test_a_text_ends_nowhere_before_settled_text() -> None:
    tokens = ids("░b░░·░░d")
    allowed = may_end(tokens, tokens == MASK, TWO_GAPS, PAD)
    assert allowed.tolist() == marks(".xxx...x").tolist()


def test_behind_a_settled_pad_all_is_padding() -> None:
    tokens = ids("a░·░░░░d")
    tokens, open = padded_out(tokens, tokens == MASK, TWO_GAPS, PAD)
    assert shown_as(tokens) == "a░··░░░d"
    assert open.tolist() == marks(".x..xxx.").tolist()


def shown_as(tokens: torch.Tensor) -> str:
    return "".join("░·abcd"[token] for token in tokens.tolist())


def test_a_pad_waits_for_all_before_it_however_sure() -> None:
    model = says({"a": 0.5}, {"b": 0.3}, {"·": 0.99}, {"·": 0.99})
    assert shown(denoise(model, given=rules("AAAA", pad=True), threshold=0.9)) == [
        "a░░░",
        "ab░░",
        "ab··",
    ]


def test_a_sampled_pad_waits_too() -> None:
    # A pad is not the likeliest anywhere, but it is drawn often.
    model = says(*[{"a": 0.6, "·": 0.39}] * 4)
    for seed in range(30):
        steps = shown(denoise(model, given=rules("AAAA", pad=True), temperature=1.0, seed=seed))
        assert all("░·" not in canvas for canvas in steps)


def test_an_empty_text_is_a_text() -> None:
    assert shown(denoise(says(*[{"·": 0.9}] * 4), given=rules("AAAA", pad=True))) == ["····"]


def test_a_pad_that_settles_beside_text_ends_the_text() -> None:
    model = says({"a": 0.9}, {"·": 0.9}, {"c": 0.9}, {"d": 0.9})
    steps = denoise(model, given=rules("AAAA", pad=True), steps=1)
    assert shown(steps) == ["a···"]


def test_text_settles_near_the_first_open_slot() -> None:
    model = says({"a": 0.3}, {"b": 0.4}, {"c": 0.5}, {"d": 0.9})
    steps = shown(denoise(model, given=rules("AAAA", pad=True, reach=2)))
    assert steps == ["░b░░", "ab░░", "ab░d", "abcd"]
    assert shown(denoise(model, given=rules("AAAA", pad=True, reach=4)))[0] == "░░░d"


def test_a_small_budget_widens_the_reach_and_is_kept() -> None:
    model = says(*[{"a": 0.5}] * 12)
    steps = denoise(model, "░" * 12, rules("A" * 12, pad=True, reach=2), steps=3)
    assert shown(steps) == ["aaaa" + "░" * 8, "a" * 8 + "░" * 4, "a" * 12]
    pads = says(*[{"a": 0.5}] * 3, *[{"·": 0.9}] * 9)
    steps = denoise(pads, "░" * 12, rules("A" * 12, pad=True), steps=2)
    assert shown(steps)[-1] == "aaa" + "·" * 9
    assert len(steps) <= 2


def test_each_gap_ends_where_it_will() -> None:
    model = says({"a": 0.5}, {"·": 0.9}, {"c": 0.9}, {"d": 0.9}, {"·": 0.9}, {"a": 0.2})
    steps = denoise(model, "░" * 6, rules("AABBBB", pad=True))
    assert shown(steps)[-1] == "a·cd··"


def test_kept_text_behind_an_open_slot_forbids_an_end() -> None:
    model = says({"·": 0.9, "a": 0.05}, {"x": 0.1}, {"·": 0.9, "b": 0.05}, {"·": 0.9})
    assert shown(denoise(model, "░d░░", rules("AAAA", pad=True)))[-1] == "ad··"


@given(st.data())
def test_pads_are_never_before_text(data: st.DataObject) -> None:
    gaps = "A" * data.draw(st.integers(1, 5)) + "B" * data.draw(st.integers(0, 5))
    canvas = "".join(data.draw(st.sampled_from("░░a")) for _ in gaps)
    likely = st.dictionaries(st.sampled_from("·abc"), st.floats(0.01, 0.24), max_size=4)
    model = [logits(*(data.draw(likely) for _ in gaps)) for _ in range(4)]
    steps = denoise(
        lambda tokens: model[int((tokens == MASK).sum()) % 4],
        canvas,
        rules(gaps, pad=True, reach=data.draw(st.integers(1, 5))),
        threshold=data.draw(st.sampled_from([None, 0.2])),
        steps=data.draw(st.integers(1, 6)),
        temperature=data.draw(st.sampled_from([0.0, 1.0])),
    )
    for step in steps:
        settled = step.tokens.masked_fill(step.open, MASK)
        for name in set(gaps):
            tokens = settled[torch.tensor([gap == name for gap in gaps])].tolist()
            end = tokens.index(PAD) if PAD in tokens else len(tokens)
            assert MASK not in tokens[:end] or end == len(tokens)
            assert set(tokens[end:]) <= {PAD}

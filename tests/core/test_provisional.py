"""Drafts: smallest edits, pins, where errors fall, and the numbers of a session."""

from hypothesis import given
from hypothesis import strategies as st

from frostline.core.meter import Meter
from frostline.core.provisional import (
    Draft,
    Piece,
    PieceState,
    composed,
    errors_by_hole,
    line_end_near,
    merged,
    pinned,
    reopened,
    smallest,
    with_line_ends,
)
from frostline.core.regions import Gap, Hole, Pinned, Regions
from frostline.core.text import Document, Span, TextEdit, apply
from harness.texts import TEXTS


def draft(*pieces: tuple[str, str]) -> Draft:
    return Draft(tuple(Piece(text, PieceState(state), 0.5) for text, state in pieces))


def document(text: str) -> Document:
    return Document.of("file:///a.py", 1, "python", text)


@given(TEXTS, TEXTS, st.data())
def test_the_smallest_edit_gives_the_same_text(text: str, new: str, data: st.DataObject) -> None:
    before = document(text)
    start = data.draw(st.integers(0, len(before.text)))
    end = data.draw(st.integers(start, len(before.text)))
    edit = TextEdit(Span(start, end), new)
    small = smallest(before, edit)
    assert apply(before.text, [small]) == apply(before.text, [edit])
    assert start <= small.span.start <= small.span.end <= end
    assert len(small.text) <= len(new)


def test_the_smallest_edit_does_not_cut_a_crlf() -> None:
    edit = TextEdit(Span(0, 4), "a\r\r\n")
    small = smallest(document("a\r\n\n"), edit)
    assert small == TextEdit(Span(1, 4), "\r\r\n")


def test_new_lines_get_the_line_end_of_their_place() -> None:
    mixed = document("a\r\nb\nc\rd")
    ends = [line_end_near(mixed, mixed.line_start(line)) for line in range(4)]
    assert ends == ["\r\n", "\n", "\r", "\r"]
    assert line_end_near(document("one line"), 3) == "\n"
    assert with_line_ends("x\ny", "\r\n") == "x\r\ny"


def test_pieces_of_one_state_are_one_piece() -> None:
    pieces = draft(("a", "stable"), ("", "open"), ("b", "stable"), ("c", "open")).pieces
    assert [(piece.text, piece.state.value) for piece in merged(pieces)] == [
        ("ab", "stable"),
        ("c", "open"),
    ]


def test_a_hole_is_composed_of_its_gaps_and_pins() -> None:
    hole = Hole(Span(0, 0), parts=(Gap(), Pinned("(x)"), Gap()))
    whole = composed(hole, [draft(("len", "draft")), draft((" + 1", "open"))])
    assert whole.text == "len(x) + 1"
    assert not whole.settled


@given(TEXTS, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=4))
def test_pins_and_gaps_are_the_draft_in_order(text: str, cuts: list[tuple[int, int]]) -> None:
    whole = draft((text, "stable"))
    spans = [Span(*sorted((min(a, len(text)), min(b, len(text))))) for a, b in cuts]
    for change in (pinned, reopened):
        parts = change(Hole(Span(0, 0)), whole, spans).parts
        assert "".join(p.text if isinstance(p, Pinned) else p.old for p in parts) == text
    kept = "".join(
        letter for at, letter in enumerate(text) if any(s.start <= at < s.end for s in spans)
    )
    assert (
        "".join(
            p.text for p in pinned(Hole(Span(0, 0)), whole, spans).parts if isinstance(p, Pinned)
        )
        == kept
    )


def test_a_reopened_span_leaves_the_users_pins_alone() -> None:
    hole = pinned(Hole(Span(0, 0)), draft(("abcdef", "stable")), [Span(2, 4)])
    again = reopened(hole, draft(("abcdef", "stable")), [Span(0, 6)])
    assert again.parts == (Gap(old="ab"), Pinned("cd"), Gap(old="ef"))


def test_errors_fall_on_the_holes_they_lie_in() -> None:
    before = document("a = 1\r\nb = 2\r\n")
    regions = Regions.tile(len(before.text), [Hole(Span(4, 5)), Hole(Span(11, 12))])
    drafts = [draft(("x\ny", "stable")), draft(("2)", "stable"))]
    after = "a = x\r\ny\r\nb = 2)\r\n"
    error = Span(after.index(")"), after.index(")") + 1)
    assert errors_by_hole(before, regions, drafts, [error]) == ((), (Span(1, 2),))


def test_an_error_outside_all_holes_is_on_all_of_them() -> None:
    before = document("a = 1\n\n\nb\n")
    regions = Regions.tile(len(before.text), [Hole(Span(4, 5))])
    found = errors_by_hole(before, regions, [draft(("(", "stable"))], [Span(8, 9)])
    assert found == ((Span(0, 1),),)


def test_the_meter_counts_what_a_user_saw() -> None:
    meter = Meter(started=10.0)
    meter.saw(10.1, [draft(("ab", "draft"), ("░", "open"))])
    meter.saw(10.2, [draft(("a", "stable"), ("xc", "draft"))])
    numbers = meter.numbers(10.3, [draft(("axc", "stable"))])
    assert round(numbers.time_to_first_useful_block_ms or 0) == 200
    assert round(numbers.time_to_complete_ms) == 300
    assert numbers.provisional_updates == 2
    assert round(numbers.revision_churn, 3) == round(1 / 3, 3)  # the "b" was shown and replaced


def test_stable_text_that_did_not_last_is_no_useful_block() -> None:
    meter = Meter(started=0.0)
    meter.saw(1.0, [draft(("wrong", "stable"))])
    assert meter.numbers(2.0, [draft(("right", "stable"))]).time_to_first_useful_block_ms is None

"""Documents: line ends, positions, changes. The oracle is the plain text and Python's own codecs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.core.text import (
    Change,
    Document,
    Encoding,
    Position,
    Span,
    TextEdit,
    apply,
    line_end,
    split_lines,
    units,
)
from harness.texts import TEXTS

ENCODINGS = st.sampled_from(list(Encoding))
CODECS = {Encoding.UTF8: "utf-8", Encoding.UTF16: "utf-16-le", Encoding.UTF32: "utf-32-le"}
WIDTHS = {Encoding.UTF8: 1, Encoding.UTF16: 2, Encoding.UTF32: 4}


def document(text: str) -> Document:
    return Document.of("file:///a.py", 1, "python", text)


def oracle_lines(text: str) -> list[str]:
    return re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)


@given(TEXTS)
def test_lines_end_at_lf_crlf_and_cr_only(text: str) -> None:
    assert list(split_lines(text)) == oracle_lines(text)
    assert "".join(split_lines(text)) == text
    assert all(line_end(line) for line in split_lines(text)[:-1])


def test_a_form_feed_is_no_line_end() -> None:
    assert document("a\f\nb\u2028c\r\nd\re").lines == ("a\f\n", "b\u2028c\r\n", "d\r", "e")


@given(TEXTS, ENCODINGS, st.data())
def test_positions_agree_with_the_codecs(
    text: str, encoding: Encoding, data: st.DataObject
) -> None:
    offset = data.draw(st.integers(0, len(text)))
    lines = oracle_lines(text)
    line, rest = 0, offset
    while line < len(lines) - 1 and rest >= len(lines[line]):
        rest -= len(lines[line])
        line += 1
    before = lines[line][:rest]
    width = len(before.encode(CODECS[encoding])) // WIDTHS[encoding]
    position = document(text).position(offset, encoding)
    assert position == Position(line, width)
    # Within a line end there is no position of its own: it means the end of the line's text.
    if len(before) <= len(lines[line].rstrip("\r\n")):
        assert document(text).offset(position, encoding) == offset


@given(TEXTS, ENCODINGS, st.integers(-2, 60), st.integers(-2, 60))
def test_every_position_means_a_place_in_the_text(
    text: str, encoding: Encoding, line: int, character: int
) -> None:
    offset = document(text).offset(Position(line, character), encoding)
    assert 0 <= offset <= len(text)


def test_a_position_inside_a_character_is_before_it() -> None:
    text = document("😀é")
    assert [text.offset(Position(0, n), Encoding.UTF16) for n in range(5)] == [0, 0, 1, 2, 2]
    assert [text.offset(Position(0, n), Encoding.UTF8) for n in range(8)] == [
        0,
        0,
        0,
        0,
        1,
        1,
        2,
        2,
    ]


@given(
    TEXTS, st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), TEXTS), max_size=6), ENCODINGS
)
def test_changes_give_the_text_that_plain_strings_give(
    text: str, edits: list[tuple[int, int, str]], encoding: Encoding
) -> None:
    now, plain = document(text), text
    for version, (first, second, new) in enumerate(edits, 2):
        # Through positions, as an editor does; what they mean is read back from the document.
        places = [now.position(min(at, len(plain)), encoding) for at in sorted((first, second))]
        start, end = sorted(now.offset(place, encoding) for place in places)
        plain = plain[:start] + new + plain[end:]
        now = now.changed(version, [Change((places[0], places[1]), new)], encoding)
        assert now.text == plain
        assert now.lines == split_lines(plain)
        assert now.version == version


@given(TEXTS, st.lists(st.integers(0, 99), max_size=8), TEXTS)
def test_line_starts_stay_right_over_changes(text: str, asked: list[int], new: str) -> None:
    before = document(text)
    for at in asked:  # fill the index in any order
        before.line_at(min(at, len(text)))
    at = min(asked[0], len(text)) if asked else 0
    place = before.position(at, Encoding.UTF32)
    after = before.changed(2, [Change((place, place), new)], Encoding.UTF32)
    fresh = document(after.text)
    assert [after.line_start(n) for n in range(len(after.lines))] == [
        fresh.line_start(n) for n in range(len(fresh.lines))
    ]
    assert len(after) == len(after.text)


def test_a_typed_lf_completes_a_cr() -> None:
    change = Change((Position(1, 0), Position(1, 0)), "\n")
    assert document("a\rb").changed(2, [change], Encoding.UTF16).lines == ("a\r\n", "b")


def test_halves_of_a_pair_become_one_character() -> None:
    half = document("\ud83d")
    change = Change((Position(0, 1), Position(0, 1)), "\ude00")
    assert half.changed(2, [change], Encoding.UTF16).text == "😀"


def test_a_change_without_a_range_is_the_whole_text() -> None:
    assert document("old").changed(7, [Change(None, "new\n")], Encoding.UTF16).text == "new\n"


def test_a_range_with_its_ends_swapped_is_turned() -> None:
    change = Change((Position(0, 2), Position(0, 1)), "X")
    assert document("abc").changed(2, [change], Encoding.UTF16).text == "aXc"


@given(TEXTS, st.data())
def test_edits_apply_as_one(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    edits = [
        TextEdit(Span(start, end), data.draw(TEXTS))
        for start, end in zip(cuts[::2], cuts[1::2], strict=False)
    ]
    plain = text
    for edit in reversed(edits):
        plain = plain[: edit.span.start] + edit.text + plain[edit.span.end :]
    assert apply(text, data.draw(st.permutations(edits))) == plain


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlaps"):
        apply("abcd", [TextEdit(Span(0, 2), "x"), TextEdit(Span(1, 3), "y")])
    with pytest.raises(ValueError, match="leaves the text"):
        apply("abcd", [TextEdit(Span(3, 9), "x")])


def test_a_span_cannot_run_backwards() -> None:
    with pytest.raises(ValueError, match="cannot run"):
        Span(3, 2)


@given(TEXTS, ENCODINGS)
def test_units_are_those_of_the_codec(text: str, encoding: Encoding) -> None:
    assert units(text, encoding) == len(text.encode(CODECS[encoding])) // WIDTHS[encoding]

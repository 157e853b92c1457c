"""Where a long rewrite is cut, and where its later blocks are after edits."""

from hypothesis import given
from hypothesis import strategies as st

from frostline.core import blocks
from frostline.core.text import Document, Span, TextEdit, apply

LINES = Document.of("", 0, "", "".join(f"line {number}\n" for number in range(20)))
WHOLE = Span(0, len(LINES))


def firsts(cut: tuple[Span, ...]) -> list[int]:
    return [LINES.line_at(block.start) for block in cut]


def test_a_short_range_stays_whole() -> None:
    assert blocks.cut(LINES, Span(0, 30), {}, 8) == (Span(0, 30),)
    assert blocks.cut(LINES, WHOLE, {}, 0) == (WHOLE,)


def test_without_borders_blocks_are_lines_as_they_come() -> None:
    assert firsts(blocks.cut(LINES, WHOLE, {}, 8)) == [0, 8, 16]


def test_an_outer_border_is_better_than_a_later_one() -> None:
    assert firsts(blocks.cut(LINES, WHOLE, {5: 1, 7: 2, 12: 1}, 8)) == [0, 5, 12]


@given(
    borders=st.dictionaries(st.integers(0, 20), st.integers(0, 3)),
    most=st.integers(0, 25),
    start=st.integers(0, len(LINES)),
    length=st.integers(0, len(LINES)),
)
def test_blocks_tile_the_range_and_none_is_too_long(
    borders: dict[int, int], most: int, start: int, length: int
) -> None:
    span = Span(start, min(len(LINES), start + length))
    cut = blocks.cut(LINES, span, borders, most)
    assert "".join(map(LINES.slice, cut)) == LINES.slice(span)
    assert [one.end for one in cut[:-1]] == [one.start for one in cut[1:]]
    for block in cut if most else ():
        assert 0 < blocks.lines(LINES, block) <= most


@given(
    places=st.lists(st.integers(0, 40), min_size=2, max_size=6, unique=True),
    start=st.integers(0, 40),
    length=st.integers(0, 20),
    text=st.text("xy", max_size=4),
)
def test_no_block_takes_in_what_was_outside_of_it(
    places: list[int], start: int, length: int, text: str
) -> None:
    before = "".join(chr(ord("A") + number) for number in range(40))
    places = sorted(places)[: len(places) // 2 * 2]
    spans = [Span(a, b) for a, b in zip(places[::2], places[1::2], strict=True)]
    edit = TextEdit(Span(start, min(40, start + length)), text)
    after = apply(before, [edit])
    old = {letter for span in spans for letter in before[span.start : span.end]}
    for span in blocks.carried(spans, [edit]):
        assert 0 <= span.start < span.end <= len(after)
        here = after[span.start : span.end]
        assert {letter for letter in here if letter.isupper()} <= old


def test_blank_blocks_are_left_out() -> None:
    document = Document.of("", 0, "", "a\n\n\nb\n")
    assert blocks.later(document, [Span(0, 2), Span(2, 4), Span(4, 6)]) == (Span(0, 2), Span(4, 6))

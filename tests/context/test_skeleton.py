import pytest
from hypothesis import given
from hypothesis import strategies as st

from context.strategies import languages, texts
from frostline.context import holes, skeleton
from frostline.context.words import splits
from frostline.core.regions import Hole
from frostline.core.text import Document, Span


def document(text: str, language: str = "python") -> Document:
    return Document.of("file:///a", 1, language, text)


@given(texts, languages, st.integers(0, 80), st.integers(0, 40), st.data())
def test_a_window_holds_the_holes_and_keeps_the_budget(
    text: str, language: str, before: int, after: int, data
) -> None:
    doc = document(text, language)
    places = data.draw(st.lists(st.integers(0, len(doc)), min_size=1, max_size=3))
    open_ = [holes.at_cursor(doc, place) for place in places]
    found = skeleton.around(doc, open_, before=before, after=after)
    first = min(hole.span.start for hole in open_)
    last = max(hole.span.end for hole in open_)
    window = found.window
    assert window.start <= first
    assert last <= window.end <= len(doc)
    # A BOM ahead of the text is shown by nobody, whatever is left of the budget.
    assert first - window.start + len(found.preamble) <= before
    assert window.end - last <= after
    assert len(found.preamble) <= before // 3
    assert "\ufeff" not in found.preamble or "\ufeff" in text[1:]
    assert not (window.start == 0 and text.startswith("\ufeff"))
    assert found.preamble == "" or found.preamble[-1] in "\r\n"
    assert not splits(doc.text, window.start)
    assert not splits(doc.text, window.end)


FUNCTIONS = "".join(
    f"def number_{i}(x):\n    y = x + {i}\n    return y * number_{i // 2}(x)\n\n"
    for i in range(200)
)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_not_cut(end: str) -> None:
    doc = document(FUNCTIONS.replace("\n", end))
    hole = holes.body(doc, len(doc) // 2)
    assert hole is not None
    for budget in range(40, 400, 7):
        found = skeleton.around(doc, [hole], before=budget, after=budget)
        window = found.window
        assert window.start in {doc.line_start(line) for line in range(len(doc.lines))}
        assert doc.line_start(doc.line_at(window.end)) == window.end
        assert found.preamble.count("\r") == found.preamble.count(end) * end.count("\r")


def test_what_the_preamble_leaves_goes_to_the_window() -> None:
    doc = document("# a comment that says nothing\n" * 100 + "x = 1\n")
    hole = Hole(Span(len(doc) - 2, len(doc) - 1))
    found = skeleton.around(doc, [hole], before=304, after=10)
    assert found.preamble == ""
    assert hole.span.start - found.window.start == 304


def test_nothing_is_shown_twice() -> None:
    doc = document(FUNCTIONS)
    hole = holes.body(doc, len(doc) // 2)
    assert hole is not None
    found = skeleton.around(doc, [hole], before=400, after=100)
    window = doc.slice(found.window)
    assert found.preamble
    for line in found.preamble.splitlines():
        assert line.removesuffix(" ...") not in window


def test_a_line_over_the_budget_is_cut_around_the_hole() -> None:
    text = "data = [" + "1234567890, " * 100 + "]\n"
    doc = document(text)
    found = skeleton.around(doc, [Hole(Span(600, 600))], before=50, after=20)
    assert found == skeleton.Surroundings("", Span(550, 620))


def test_a_long_line_beside_the_hole_is_cut_when_little_else_is_there() -> None:
    doc = document("x" * 500 + "\ny = \n" + "z" * 500 + "\n")
    hole = Hole(Span(505, 505))
    found = skeleton.around(doc, [hole], before=100, after=100)
    assert found.window == Span(405, 605)


def test_a_cut_tears_no_character() -> None:
    doc = document("# " + "👩\u200d👧" * 100)
    for budget in range(10, 16):
        window = skeleton.around(doc, [Hole(Span(152, 152))], before=budget, after=budget).window
        assert (window.start - 2) % 3 == 0
        assert (window.end - 2) % 3 == 0


def test_several_holes_are_all_in_the_window() -> None:
    doc = document(FUNCTIONS)
    spans = [Span(100, 100), Span(5000, 5005)]
    window = skeleton.around(doc, [Hole(span) for span in spans], before=30, after=30).window
    assert window.start <= 100
    assert window.end >= 5005


def test_without_a_grammar_there_is_no_preamble() -> None:
    doc = document("Dear all,\n" * 100, "plaintext")
    found = skeleton.around(doc, [Hole(Span(500, 500))], before=100, after=100)
    assert found == skeleton.Surroundings("", Span(400, 600))


def test_no_budget_shows_the_holes_alone() -> None:
    doc = document(FUNCTIONS)
    found = skeleton.around(doc, [Hole(Span(1000, 1010))], before=0, after=0)
    assert found == skeleton.Surroundings("", Span(1000, 1010))


def test_a_window_needs_a_hole() -> None:
    with pytest.raises(ValueError, match="hole"):
        skeleton.around(document("x"), [], before=1, after=1)


def test_a_long_file_is_looked_at_in_its_head_and_close_by() -> None:
    head = "import json\nimport os\n\n"
    doc = document(head + FUNCTIONS * 60 + "json.loads(number_199(1))\n")
    assert len(doc) > skeleton._FAR + skeleton._HEAD
    found = skeleton.around(doc, [Hole(Span(len(doc), len(doc)))], before=300, after=0)
    assert found.preamble.startswith("import json\n")
    assert "os" not in found.preamble

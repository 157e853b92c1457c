import pytest
from hypothesis import given
from hypothesis import strategies as st

from context.strategies import languages, texts
from frostline.context import holes, syntax
from frostline.context.words import BLANK, splits
from frostline.core.regions import Regions
from frostline.core.text import Document, Span, without_end


def document(text: str, language: str = "python") -> Document:
    return Document.of("file:///a", 1, language, text)


def line_of(doc: Document, offset: int) -> tuple[int, str]:
    line = doc.line_at(offset)
    return doc.line_start(line), without_end(doc.lines[line])


@given(texts, languages, st.data())
def test_a_cursors_hole_is_in_its_line_and_cuts_nothing(text: str, language: str, data) -> None:
    doc = document(text, language)
    offset = data.draw(st.integers(0, len(doc) + 3))
    hole = holes.at_cursor(doc, offset)
    Regions.tile(len(doc), [hole])
    start, line = line_of(doc, hole.span.start)
    assert hole.span.end <= start + len(line)
    assert not splits(doc.text, hole.span.start)
    assert not splits(doc.text, hole.span.end)
    assert doc.slice(hole.span).strip(BLANK) == ""
    assert doc.text[: hole.span.start].endswith(hole.required)
    assert not hole.multiline or line.strip(BLANK + "\ufeff") == ""
    assert hole.indent.strip(" \t") == ""
    assert hole.indent in line
    if hole.span:
        assert hole.span.end == start + len(line)


@given(texts, languages, st.data())
def test_a_selections_hole_keeps_what_was_selected(text: str, language: str, data) -> None:
    doc = document(text, language)
    start = data.draw(st.integers(0, len(doc)))
    end = data.draw(st.integers(start, len(doc)))
    hole = holes.selection(doc, Span(start, end))
    Regions.tile(len(doc), [hole])
    old = doc.slice(hole.span)
    assert not splits(doc.text, hole.span.start)
    assert not splits(doc.text, hole.span.end)
    selected = doc.text[start:end].strip(BLANK + "\r\n\ufeff")
    assert selected in old
    if selected:
        assert hole.multiline == ("\n" in old or "\r" in old)
        again = holes.selection(doc, hole.span)
        assert again.span.start <= hole.span.start
        assert again.span.end >= hole.span.end


@pytest.mark.parametrize(
    ("text", "offset", "span"),
    [
        ("\ufeffx", 0, Span(1, 1)),
        ("\ufeff", 0, Span(1, 1)),
        ("\ufeff  \n", 0, Span(1, 3)),
        ("a\r\nb", 2, Span(1, 1)),
        ("ae\u0301", 2, Span(1, 1)),
        ("a\u2028", 1, Span(1, 1)),
        ("a\x85b\n", 2, Span(2, 2)),
        ("a \rb", 1, Span(1, 2)),
        ("", 0, Span(0, 0)),
        ("x", 99, Span(1, 1)),
        ("x\n", 2, Span(2, 2)),
        ("a\t \t\n", 1, Span(1, 4)),
    ],
)
def test_cursors_in_odd_places(text: str, offset: int, span: Span) -> None:
    assert holes.at_cursor(document(text), offset).span == span


def test_a_cursor_between_text_never_parses(monkeypatch) -> None:
    monkeypatch.setattr(holes, "parse", None)
    doc = document("x = 1\n\nif y:\n    z = \n")
    for offset in (0, 3, 5, len(doc) - 1):
        assert not holes.at_cursor(doc, offset).multiline


def test_data_is_not_a_word() -> None:
    doc = document("x = '" + "A" * 5000)
    assert holes.at_cursor(doc, len(doc)).required == ""


def test_a_selection_of_everything_with_a_byte_order_mark() -> None:
    doc = document("\ufeffx = 1\ny = 2\n")
    assert holes.selection(doc, Span(0, len(doc))).span == Span(1, len(doc) - 1)


def test_a_selection_beyond_the_end() -> None:
    doc = document("x = 1")
    assert holes.selection(doc, Span(0, 99)).span == Span(0, 5)
    assert holes.selection(doc, Span(50, 99)).span == Span(5, 5)


@given(texts, languages, st.data())
def test_bodies_and_stubs_of_any_text(text: str, language: str, data) -> None:
    doc = document(text, language)
    offset = data.draw(st.integers(0, len(doc)))
    found = holes.stubs(doc, None)
    Regions.tile(len(doc), found)
    assert all(hole.multiline for hole in found)
    assert set(holes.stubs(doc, offset)) <= set(found)
    body = holes.body(doc, offset)
    for hole in [*found, *([body] if body else [])]:
        assert hole.span.end <= len(doc)
        assert not splits(doc.text, hole.span.start)
        assert not splits(doc.text, hole.span.end)
        assert hole.indent.strip(" \t") == ""
    if syntax.parse(doc.text, language) is None:
        assert body is None
        assert found == ()


def test_stubs_of_a_class_are_among_those_of_the_file() -> None:
    text = "class A:\n    def f(self): ...\n\nclass B:\n    def g(self): ...\n\ndef h(): ...\n"
    doc = document(text)
    everywhere = holes.stubs(doc, None)
    assert len(everywhere) == 3
    assert holes.stubs(doc, text.index("f(self)")) == everywhere[:1]
    assert holes.stubs(doc, text.index("g(self)")) == everywhere[1:2]
    assert holes.stubs(doc, text.index("def h")) == everywhere


def test_a_function_in_a_class_in_a_function_belongs_to_the_innermost() -> None:
    text = "class A:\n    def f(self):\n        class B:\n            def g(self): ...\n"
    doc = document(text)
    hole = holes.body(doc, text.index("def g") + 1)
    assert hole is not None
    assert doc.slice(hole.span) == " ..."
    outer = holes.body(doc, text.index("class B"))
    assert outer is not None
    assert doc.slice(outer.span).startswith("class B")

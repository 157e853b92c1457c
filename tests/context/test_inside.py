"""What would end the string or comment that a hole lies in, and how far its lines are indented."""

import pytest

from frostline.context.inside import closing, margin
from frostline.core.regions import Hole
from frostline.core.text import Document, Span


def opened(marked: str, language: str = "python") -> tuple[Document, Span]:
    """Return a document and the span between its two bars, or at its only one."""
    first, last = marked.index("|"), marked.rindex("|")
    text = marked.replace("|", "")
    end = last - 1 if last > first else first
    return Document.of("file:///a", 1, language, text), Span(first, end)


@pytest.mark.parametrize(
    ("marked", "language", "ends"),
    [
        ('name = "a|b"\n', "python", '"'),
        ('name = "|ab|"\n', "python", '"'),
        ("name = rb'a|b'\n", "python", "'"),
        ("name = f'a|b'\n", "python", "'{}"),
        ("name = f'a{c|}b'\n", "python", "'"),
        ('def f():\n    """Says |.\n    """\n', "python", '"'),
        ("name = |\n", "python", ""),
        ('name = |"a"\n', "python", ""),
        ('name = "a"|\n', "python", ""),
        ("name = 1  # why |\n", "python", ""),
        ("let a = `x|y`;", "javascript", "`"),
        ("/* why | */ f();", "javascript", "/"),
        ("// why |\nf();", "javascript", ""),
        ('let a = r#"x|y"#;', "rust", '"'),
        ('say "a|b"', "plaintext", ""),
    ],
)
def test_what_would_end_what_a_hole_is_inside_of(marked: str, language: str, ends: str) -> None:
    assert closing(*opened(marked, language)) == ends


@pytest.mark.parametrize(
    ("marked", "indent", "kept"),
    [
        ("def f():\n    |a()\n    b()|\n", "    ", "    "),
        ("if a:\n    |b()\n\nc()|\n", "    ", ""),
        ("if a:\n\t|b()\n\tif c:\n\t\td()|\n", "\t", "\t"),
        ('def f():\n    """|Says.\n    More.|"""\n', "    ", ""),
    ],
)
def test_lines_are_indented_as_deep_as_the_shallowest_that_they_replace(
    marked: str, indent: str, kept: str
) -> None:
    document, span = opened(marked)
    assert margin(document, Hole(span, multiline=True, indent=indent)) == kept


def test_a_hole_in_a_line_has_no_further_lines() -> None:
    document, span = opened("def f():\n    a = |\n")
    assert margin(document, Hole(span, multiline=False, indent="    ")) == ""

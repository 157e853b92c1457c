"""Real sources: whatever stands in a body can be taken out and something else put in.

The standard library and an installed package for Python; for the other languages the texts of the
case files, with each kind of line end.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import rich

from context.test_cases import CASES, read
from frostline.context import holes, syntax
from frostline.context.outline import Definition, definitions
from frostline.context.syntax import Tree
from frostline.core.regions import Hole, Regions
from frostline.core.text import Document, Span, TextEdit, apply

ENDS = ("\n", "\r\n", "\r")


def with_ends(text: str, end: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", end)


def sample() -> list[Path]:
    library = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    package = sorted(Path(rich.__file__).parent.glob("*.py"))
    return [path for path in library[::9] + package[::8] if path.stat().st_size < 80_000]


def functions(doc: Document) -> Iterator[tuple[Tree, Definition, Hole]]:
    tree = syntax.parse(doc.text, doc.language)
    assert tree is not None
    for each in definitions(tree, tree.matches()):
        if each.kind in ("function", "closure"):
            hole = holes.body(doc, tree.offset(each.body.start_byte))
            assert hole is not None
            yield tree, each, hole


def is_inside(span: Span, others: Iterable[Span]) -> bool:
    return any(
        other != span and other.start <= span.start and span.end <= other.end for other in others
    )


def line_left_of(doc: Document, offset: int) -> str:
    return doc.text[doc.line_start(doc.line_at(offset)) : offset]


@pytest.mark.parametrize("path", sample(), ids=lambda path: path.stem)
def test_python_bodies(path: Path) -> None:
    end = ENDS[len(path.stem) % len(ENDS)]
    doc = Document.of(path.as_uri(), 1, "python", with_ends(path.read_text("utf-8"), end))
    ast.parse(doc.text)
    assert syntax.errors(doc.text, "python") == ()
    edits: dict[Span, TextEdit] = {}
    for tree, each, hole in functions(doc):
        if each.kind == "closure":
            assert hole.span == tree.span(each.body)
            continue
        assert doc.text[hole.span.end : hole.span.end + 1] in ("", "\r", "\n")
        left = line_left_of(doc, hole.span.start)
        if left.strip():
            # Behind a header's colon, or behind a docstring that is all there is.
            new = f"{end}{hole.indent}{' ' if left.rstrip().endswith(':') else ''}pass"
        else:
            assert left == hole.indent
            new = "pass"
        edits[hole.span] = TextEdit(hole.span, new)
    outermost = [edit for span, edit in edits.items() if not is_inside(span, edits)]
    ast.parse(apply(doc.text, outermost))
    for edit in list(edits.values())[::10]:
        ast.parse(apply(doc.text, [edit]))
    for edit in list(edits.values())[:1]:
        assert syntax.breaks(doc.text, [edit], "python") == ()


@pytest.mark.parametrize("path", sample()[::3], ids=lambda path: path.stem)
def test_python_stubs(path: Path) -> None:
    end = ENDS[len(path.stem) % len(ENDS)]
    doc = Document.of(path.as_uri(), 1, "python", with_ends(path.read_text("utf-8"), end))
    found = holes.stubs(doc, None)
    Regions.tile(len(doc), found)
    same = [TextEdit(hole.span, doc.slice(hole.span)) for hole in found]
    assert apply(doc.text, same) == doc.text
    assert syntax.breaks(doc.text, same, "python") == ()
    for hole in found:
        assert holes.body(doc, hole.span.end) is not None


BRACED = [path for path in CASES if read(path).document.language not in ("python", "plaintext")]


@pytest.mark.parametrize("end", ENDS, ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("path", BRACED, ids=lambda path: path.stem)
def test_bodies_between_braces(path: Path, end: str) -> None:
    case = read(path).document
    text = "// é 😀\n" + with_ends(case.text, "\n")
    doc = Document.of(case.uri, 1, case.language, with_ends(text, end))
    for tree, each, hole in functions(doc):
        is_block = bool(each.body.children) and each.body.children[0].type == "{"
        new = "" if is_block else "0"
        assert syntax.breaks(doc.text, [TextEdit(hole.span, new)], doc.language) == ()
        body = tree.span(each.body)
        assert body.start <= hole.span.start <= hole.span.end <= body.end
        if is_block and hole.span.start > body.start + 1:
            left = line_left_of(doc, hole.span.start)
            assert left == hole.indent or not left.strip() or hole.span.start == hole.span.end

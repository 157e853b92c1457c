"""The stretch of a document that a model sees, and a skeleton of what is above it.

The window is verbatim. What lies above it and matters (imports in use, the headers of the scopes
that the holes are in, signatures of what is called near them) is put in front as plain code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from frostline.context.outline import Definition, definitions
from frostline.context.syntax import Captures, Tree, parse
from frostline.context.words import BOM, indentation, whole_after, whole_before
from frostline.core.regions import Hole
from frostline.core.text import Document, Span, line_end

# How far from a hole a name counts as near, in code points.
_NEAR = 2000
# A signature or import longer than this says too little for its length.
_LONGEST_PIECE = 400
# How deep below the root imports and top-level definitions start: inside `if`, `export`, a
# decorator or a namespace, with the node that holds its content in between.
_DEPTH = 4
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a model is shown around holes.

    Attributes:
        preamble: code from above the window, each line with a line end; may be empty.
        window: the stretch of the document that is shown as it is; all holes are in it.
    """

    preamble: str
    window: Span


@dataclass(frozen=True, slots=True)
class _Piece:
    """One line or more of a preamble: the lower the rank, the more it matters."""

    rank: int
    span: Span
    text: str


def around(document: Document, holes: Sequence[Hole], *, before: int, after: int) -> Surroundings:
    """Return what to show of a document around holes.

    Args:
        document: the whole text.
        holes: at least one; all of them end up in the window.
        before: code points to show ahead of the first hole, the preamble included.
        after: code points to show behind the last hole.

    Returns:
        A window that starts and ends with whole lines as far as the budget allows; a line is cut
        only when it alone is over the budget. The preamble takes at most a third of `before`, and
        nothing when the window reaches the top of the file. A BOM is in neither.

    Raises:
        ValueError: there are no holes.
    """
    if not holes:
        raise ValueError("a window needs a hole to be around")
    first = min(hole.span.start for hole in holes)
    last = max(hole.span.end for hole in holes)
    end = _window_end(document, last, after)
    top = min(1 if document.lines[0].startswith(BOM) else 0, first)
    start = _window_start(document, first, before)
    if start <= top:
        return Surroundings("", Span(top, end))
    share = before // 3
    reserved = _window_start(document, first, before - share)
    chosen = _chosen(_pieces(document, holes, Span(reserved, end)), share)
    taken = sum(len(piece.text) for piece in chosen)
    start = max(_window_start(document, first, before - taken), top)
    shown = [piece for piece in chosen if piece.span.start < start]
    return Surroundings("".join(piece.text for piece in shown), Span(start, end))


def _window_start(document: Document, first: int, budget: int) -> int:
    earliest = max(first - budget, 0)
    line = document.line_at(earliest)
    start = document.line_start(line)
    if start < earliest:
        following = start + len(document.lines[line])
        start = following if following <= first else earliest
        if start == following == first and line_end(document.lines[line]) == "":
            start = earliest
    return min(whole_after(document.text, start), first)


def _window_end(document: Document, last: int, budget: int) -> int:
    latest = min(last + budget, len(document))
    line = document.line_at(latest)
    start = document.line_start(line)
    if latest == start + len(document.lines[line]) or start > last:
        return latest if latest == start + len(document.lines[line]) else start
    return max(whole_before(document.text, latest), last)


def _chosen(pieces: Iterable[_Piece], budget: int) -> list[_Piece]:
    """Return the pieces that fit, the ones that matter most first in line, in the text's order."""
    chosen: list[_Piece] = []
    for piece in sorted(pieces, key=lambda piece: (piece.rank, -piece.span.start)):
        if len(piece.text) <= budget:
            chosen.append(piece)
            budget -= len(piece.text)
    return sorted(chosen, key=lambda piece: piece.span)


def _pieces(document: Document, holes: Sequence[Hole], window: Span) -> Iterator[_Piece]:
    tree = parse(document.text, document.language)
    if tree is None:
        return
    scopes = _scopes(tree, holes, window.start)
    names = _names_near(document.text, holes, window)
    for scope in scopes:
        names.update(_WORD.findall(_header(tree, scope)))
    above = tree.matches(Span(0, window.start), depth=_DEPTH)
    end = line_end(document.lines[0]) or "\n"
    yield from _imports(tree, above, names, window.start, end)
    for scope in scopes:
        if piece := _signature(tree, scope, 1, end, open_=True):
            yield piece
    held = {scope.node.id for scope in scopes}
    for each in _top_level(definitions(tree, above)):
        if each.name not in names or each.node.id in held:
            continue
        piece = _signature(tree, each, 2, end, open_=False)
        if piece is not None and tree.offset(each.node.end_byte) <= window.start:
            yield piece


def _names_near(text: str, holes: Sequence[Hole], window: Span) -> set[str]:
    names: set[str] = set()
    for hole in holes:
        start = max(hole.span.start - _NEAR, window.start)
        end = min(hole.span.end + _NEAR, window.end)
        names.update(_WORD.findall(text[start : hole.span.start]))
        names.update(_WORD.findall(text[hole.span.end : end]))
    return names


def _scopes(tree: Tree, holes: Sequence[Hole], above: int) -> list[Definition]:
    """Return what holds any of the holes and starts above the window, outer before inner."""
    found: dict[int, Definition] = {}
    for hole in holes:
        start, end = tree.byte(hole.span.start), tree.byte(hole.span.end)
        for each in definitions(tree, tree.matches(hole.span)):
            starts_above = tree.offset(each.node.start_byte) < above
            if (
                starts_above
                and each.kind != "closure"
                and each.holds_byte(start)
                and each.holds_byte(end)
            ):
                found[each.node.id] = each
    return sorted(found.values(), key=lambda each: (each.node.start_byte, -each.node.end_byte))


def _top_level(found: Sequence[Definition]) -> Iterator[Definition]:
    end = 0
    for each in found:
        if each.kind == "scope" or each.node.start_byte < end:
            continue
        if each.kind != "closure":
            yield each
        end = each.node.end_byte


def _imports(
    tree: Tree, above: Sequence[Captures], names: set[str], window_start: int, end: str
) -> Iterator[_Piece]:
    for captures in above:
        for kind, rank in (("import", 0), ("include", 3)):
            for node in captures.get(kind, ()):
                span = tree.span(node)
                if span.end > window_start or len(span) > _LONGEST_PIECE:
                    continue
                text = tree.text[span.start : span.end].rstrip("\r\n")
                if kind == "include" or names.intersection(_WORD.findall(text)):
                    yield _Piece(rank, span, text + end)


def _header(tree: Tree, each: Definition) -> str:
    """Return a definition's text up to its body, without the brace."""
    start, end = tree.offset(each.node.start_byte), tree.offset(each.body.start_byte)
    return tree.text[start:end].rstrip()


def _signature(tree: Tree, each: Definition, rank: int, end: str, *, open_: bool) -> _Piece | None:
    span = tree.span(each.node)
    header = _header(tree, each)
    if not header or len(header) > _LONGEST_PIECE:
        return None
    if tree.grammar.name == "python":
        header = _without_remark(header)
        text = header if open_ else f"{header} ..."
    else:
        text = f"{header} {{" if open_ else f"{header} {{}}"
    lead = indentation(_line_of(tree.text, span.start))
    return _Piece(rank, span, f"{lead}{text}{end}")


def _without_remark(header: str) -> str:
    """Return a Python header without what stands behind its colon, which is a comment."""
    head, hash_, tail = header.rpartition("#")
    if hash_ and "\n" not in tail and "\r" not in tail and head.rstrip().endswith(":"):
        return head.rstrip()
    return header


def _line_of(text: str, offset: int) -> str:
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    return text[start:offset]

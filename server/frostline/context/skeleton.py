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
# How much of a long file is looked at for a preamble: its head, for imports, and what is close.
_HEAD = 50_000
_FAR = 300_000
# A signature or import longer than this says too little for its length.
_LONGEST_PIECE = 600
# How deep below the root imports and top-level definitions start: inside `if`, `export`, a
# decorator or a namespace, with the node that holds its content in between.
_DEPTH = 4
_WORD = re.compile(r"[^\W\d]\w*")

# The part of an import that says where from, and binds no name.
_STRINGS = re.compile(r"""("[^"]*"|'[^']*')""")
_ORIGIN = {
    "python": re.compile(r"\A\s*from\b.*?\bimport\b", re.DOTALL),
    "javascript": _STRINGS,
    "typescript": _STRINGS,
    "go": re.compile(r"[\w.~-]+/"),
    "java": re.compile(r"[\w.]+\.(?=\w+\s*;)"),
}
_NO_NAMES = frozenset(
    [
        "as",
        "const",
        "core",
        "crate",
        "default",
        "from",
        "import",
        "let",
        "package",
        "pub",
        "require",
        "self",
        "static",
        "std",
        "super",
        "type",
        "use",
        "using",
        "var",
    ]
)


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
    """A part of a preamble: what it shows of the document, and how it reads there.

    The lower the rank, the more it matters: imports in use, scopes around the holes, what is named
    near them, and last what may or may not be in use.
    """

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
        A window of whole lines as far as the budget allows; a line is cut only when it alone is
        over the budget and would leave more than half of it unused. The preamble takes at most a third of `before`, and nothing when the window
        reaches the top of the file. A BOM is in neither.

    Raises:
        ValueError: there are no holes.
    """
    if not holes:
        raise ValueError("a window needs a hole to be around")
    first = min(hole.span.start for hole in holes)
    last = max(hole.span.end for hole in holes)
    top = min(1 if document.lines[0].startswith(BOM) else 0, first)
    start, end = _start(document, first, before), _end(document, last, after)
    if start <= top:
        return Surroundings("", Span(top, end))
    share = before // 3
    reserved = Span(_start(document, first, before - share), end)
    pieces = _chosen(_pieces(document, holes, reserved), share)
    # What the preamble leaves of its share goes to the window, and may show what a piece shows.
    start = max(_start(document, first, before - sum(len(piece.text) for piece in pieces)), top)
    preamble = "".join(piece.text for piece in pieces if piece.span.end <= start)
    return Surroundings(preamble, Span(start, end))


def _start(document: Document, first: int, budget: int) -> int:
    earliest = max(first - budget, 0)
    number = document.line_at(earliest)
    start, line = document.line_start(number), document.lines[number]
    if start == earliest:
        return start
    following = start + len(line)
    if len(line) <= budget or first - following > budget // 2:
        return following
    return min(whole_after(document.text, earliest), first)


def _end(document: Document, last: int, budget: int) -> int:
    latest = min(last + budget, len(document))
    number = document.line_at(latest)
    start, line = document.line_start(number), document.lines[number]
    if latest in (start, start + len(line)):
        return latest
    if len(line) <= budget or start - last > budget // 2:
        return start
    return max(whole_before(document.text, latest), last)


def _chosen(pieces: Iterable[_Piece], budget: int) -> list[_Piece]:
    """Return the pieces that fit, chosen by rank and nearness, in the order of the text."""
    chosen: list[_Piece] = []
    for piece in sorted(pieces, key=lambda piece: (piece.rank, -piece.span.start)):
        if len(piece.text) <= budget:
            chosen.append(piece)
            budget -= len(piece.text)
    return sorted(chosen, key=lambda piece: piece.span)


def _pieces(document: Document, holes: Sequence[Hole], window: Span) -> list[_Piece]:
    tree = parse(document.text, document.language)
    if tree is None:
        return []
    end = line_end(document.lines[0]) or "\n"
    scopes = _scopes(tree, holes, window.start)
    names = _names(document.text, holes, window)
    for scope in scopes:
        header = scope.header(tree)
        names.update(_WORD.findall(document.text[header.start : header.end]))
    above = _above(tree, window.start)
    found = definitions(tree, above)
    defined = {each.node.id for each in found}
    held = {scope.node.id for scope in scopes}
    named = (each for each in _outermost(found) if each.name in names and each.node.id not in held)
    pieces = [
        *_imports(tree, above, names, end),
        *(_signature(tree, scope, 1, end, is_open=True) for scope in scopes),
        *(_signature(tree, each, 2, end, is_open=False) for each in named),
        *_data(tree, above, names, defined, end),
    ]
    return [
        piece
        for piece in pieces
        if piece.span.end <= window.start and len(piece.text) <= _LONGEST_PIECE
    ]


def _above(tree: Tree, start: int) -> list[Captures]:
    """Return the matches near the root above `start`: in the file's head, and not too far away."""
    if start <= _FAR + _HEAD:
        return tree.matches(Span(0, start), depth=_DEPTH)
    return [
        *tree.matches(Span(0, _HEAD), depth=_DEPTH),
        *tree.matches(Span(start - _FAR, start), depth=_DEPTH),
    ]


def _names(text: str, holes: Sequence[Hole], window: Span) -> set[str]:
    """Return the words near the holes, and in what stands in them now."""
    names: set[str] = set()
    for hole in holes:
        start = max(hole.span.start - _NEAR, window.start)
        end = min(hole.span.end + _NEAR, window.end)
        names.update(_WORD.findall(text[start:end]))
    return names


def _scopes(tree: Tree, holes: Sequence[Hole], above: int) -> list[Definition]:
    """Return what holds any of the holes and starts above the window, outer before inner."""
    found: dict[int, Definition] = {}
    for hole in holes:
        start, end = tree.byte(hole.span.start), tree.byte(hole.span.end)
        for each in definitions(tree, tree.matches(hole.span)):
            starts_above = tree.offset(each.node.start_byte) < above
            holds = each.holds_byte(start) and each.holds_byte(end)
            if starts_above and holds and each.kind != "closure":
                found[each.node.id] = each
    return sorted(found.values(), key=lambda each: (each.node.start_byte, -each.node.end_byte))


def _outermost(found: Sequence[Definition]) -> Iterator[Definition]:
    """Return the functions and classes that are in no other, whatever scope they are in."""
    end = 0
    for each in found:
        if each.kind == "scope" or each.node.start_byte < end:
            continue
        end = each.node.end_byte
        yield each


def _signature(tree: Tree, each: Definition, rank: int, end: str, *, is_open: bool) -> _Piece:
    """Return a definition's header: open, as what follows is inside it, or with its body left out."""
    span = each.header(tree)
    line = max(tree.text.rfind("\n", 0, span.start), tree.text.rfind("\r", 0, span.start)) + 1
    lead = indentation(tree.text[line : span.start])
    if tree.grammar.name == "python":
        body = "" if is_open else " ..."
    else:
        body = " {" if is_open else " { ... }"
    return _Piece(rank, span, lead + tree.text[span.start : span.end] + body + end)


def _imports(tree: Tree, above: Sequence[Captures], names: set[str], end: str) -> Iterator[_Piece]:
    for captures in above:
        for node in captures.get("import", ()):
            text = tree.slice(node).rstrip("\r\n")
            if "*" in text:
                yield _Piece(3, tree.span(node), text + end)
            elif names & _bound(text, tree.grammar.name):
                yield _Piece(0, tree.span(node), text + end)
        for node in captures.get("include", ()):
            yield _Piece(3, tree.span(node), tree.slice(node).rstrip("\r\n") + end)


def _bound(text: str, grammar: str) -> set[str]:
    """Return the names that an import may bind; a few too many do no harm."""
    origin = _ORIGIN.get(grammar)
    rest = text if origin is None else origin.sub("", text)
    return set(_WORD.findall(rest)) - _NO_NAMES


def _data(
    tree: Tree, above: Sequence[Captures], names: set[str], defined: set[int], end: str
) -> Iterator[_Piece]:
    """Return the types that are named near the holes, whole."""
    for captures in above:
        for node in captures.get("data", ()):
            if node.id not in defined and tree.slice(captures["name"][0]) in names:
                span = tree.span(node)
                if tree.text.startswith(";", span.end):
                    span = Span(span.start, span.end + 1)
                text = tree.text[span.start : span.end].rstrip("\r\n")
                yield _Piece(2, span, text + end)

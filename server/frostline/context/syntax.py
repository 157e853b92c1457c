"""Trees over text, and whether an edit breaks what parsed.

`parse` keeps the trees of the last few texts, so that one request which asks several questions
parses once. A tree counts UTF-8 bytes; `Tree` converts to code points and back, exactly.

The text is parsed as it is but for two replacements of the same width in bytes and code points: a
lone CR becomes LF, because some grammars know no other line end, and a lone surrogate becomes
U+FFFD, because tree-sitter reads UTF-8.
"""

from __future__ import annotations

import ast
import functools
import re
import threading
import time
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from tree_sitter import Node, Point, QueryCursor
from tree_sitter import Tree as Parsed

from frostline.context.grammar import Grammar, for_language
from frostline.core.text import Span, TextEdit, apply, split_lines, without_end

# Larger texts are not parsed at all: the time is about linear, but a file of this size is data.
LARGEST = 4_000_000
# Seconds of this thread's processor time: what takes longer is no text of its language.
_PATIENCE = 1.5
# A query over an error with n parts takes n² steps; 5,000 take about 20 ms.
_MOST_PARTS = 5_000
# Bytes handed over at a time, to the parser and later to a query that looks at a node's text.
_SLICE = 4096
_KEPT = 6
_CHUNK = 1024
_LONE_CR = re.compile(r"\r(?!\n)")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed text.

    Attributes:
        text: the text, as the document has it.
        data: the bytes that were parsed.
        parsed: tree-sitter's own tree, which counts bytes.
        grammar: the grammar that made it.
        errors: what did not parse, code points, in order, none inside another.
        tangled: True when an error is so large that no query is run.
    """

    text: str = field(repr=False)
    data: bytes = field(repr=False)
    parsed: Parsed = field(repr=False)
    grammar: Grammar = field(repr=False)
    errors: tuple[Span, ...] = ()
    tangled: bool = False
    _chunks: Sequence[int] = field(repr=False, default=(0,))

    @property
    def root(self) -> Node:
        return self.parsed.root_node

    def byte(self, offset: int) -> int:
        """Return the byte at which code point `offset` starts."""
        if len(self.data) == len(self.text):
            return offset
        chunk = offset // _CHUNK
        rest = self.text[chunk * _CHUNK : offset]
        return self._chunks[chunk] + len(rest.encode("utf-8", "surrogatepass"))

    def offset(self, byte: int) -> int:
        """Return the code point that starts at `byte`, or that `byte` is inside of."""
        if len(self.data) == len(self.text):
            return byte
        chunk = bisect_right(self._chunks, byte) - 1
        rest = self.data[self._chunks[chunk] : byte]
        return chunk * _CHUNK + len(rest.decode("utf-8", "ignore"))

    def span(self, node: Node) -> Span:
        """Return what a node covers, in code points."""
        return Span(self.offset(node.start_byte), self.offset(node.end_byte))

    def slice(self, node: Node) -> str:
        """Return the text of a node."""
        span = self.span(node)
        return self.text[span.start : span.end]

    def matches(self, span: Span | None = None, depth: int | None = None) -> list[Captures]:
        """Return the matches of the grammar's query, in the order of the text.

        Args:
            span: only those that touch this span, code points; None for the whole text.
            depth: only those that start at most so deep below the root.
        """
        if self.tangled:
            return []
        cursor = QueryCursor(self.grammar.query)
        if span is not None:
            # An empty range matches nothing; a byte on each side finds what ends or starts there.
            start, end = self.byte(span.start), self.byte(span.end)
            cursor.set_byte_range(max(start - 1, 0), end + 1)
        if depth is not None:
            cursor.set_max_start_depth(depth)
        return [captures for _, captures in cursor.matches(self.root)]

    def path(self, span: Span) -> list[Node]:
        """Return the nodes that hold all of `span`, from the root inwards."""
        start, end = self.byte(span.start), self.byte(span.end)
        cursor, path = self.parsed.walk(), [self.root]
        while cursor.goto_first_child_for_byte(start) is not None:
            node = cursor.node
            if node is None or node.start_byte > start or node.end_byte < end:
                break
            path.append(node)
        return path


Captures = dict[str, list[Node]]


def parse(text: str, language: str) -> Tree | None:
    """Return the tree of a text, made once for each of the last few texts.

    None when the language has no grammar, and for a text that is too large or that takes too long
    to be worth it.
    """
    if for_language(language) is None or len(text) > LARGEST:
        return None
    return _parse(text, language)


@functools.lru_cache(maxsize=_KEPT)
def _parse(text: str, language: str) -> Tree | None:
    grammar = for_language(language)
    assert grammar is not None
    data = _readable(text).encode("utf-8")
    parsed = _parsed(data, grammar)
    if parsed is None:
        return None
    chunks = [0]
    if len(data) != len(text):
        pieces = (text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK))
        lengths = (len(piece.encode("utf-8", "surrogatepass")) for piece in pieces)
        # As many as offsets can ask for: the text's own end only where it starts a chunk.
        chunks = list(accumulate(lengths, initial=0))[: len(text) // _CHUNK + 1]
    tree = Tree(text, data, parsed, grammar, _chunks=chunks)
    if not parsed.root_node.has_error:
        return tree
    nodes = list(_error_nodes(parsed))
    tangled = any(node.child_count > _MOST_PARTS for node in nodes)
    outer, reached = [], 0
    for node in nodes:
        if node.start_byte >= reached:
            outer.append(tree.span(node))
            reached = max(reached, node.end_byte)
    return replace(tree, errors=tuple(outer), tangled=tangled)


def _readable(text: str) -> str:
    if "\r" in text:
        text = _LONE_CR.sub("\n", text)
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _parsed(data: bytes, grammar: Grammar) -> Parsed | None:
    deadline = time.thread_time() + _PATIENCE

    def is_late(byte: int, has_error: bool) -> bool:
        return time.thread_time() > deadline

    def read(byte: int, point: Point) -> bytes:
        return data[byte : byte + _SLICE]

    try:
        return grammar.parser().parse(read, progress_callback=is_late)
    except ValueError:  # how the binding says that it was stopped
        return None


def _error_nodes(parsed: Parsed) -> Iterator[Node]:
    """Return all nodes that are an error or missing, in the text's order, outer before inner."""
    # Not recursive: a file can be nested deeper than Python's stack.
    waiting = [parsed.root_node]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            yield node
        if node.child_count <= _MOST_PARTS or not node.is_error:
            waiting.extend(child for child in reversed(node.children) if child.has_error)


def errors(text: str, language: str) -> tuple[Span, ...]:
    """Return where a text does not parse: code points, in order, none inside another.

    A missing token is an empty span where it should be. Empty without a grammar.
    """
    tree = parse(text, language)
    return () if tree is None else tree.errors


def breaks(before: str, edits: Sequence[TextEdit], language: str) -> tuple[Span, ...]:
    """Return the errors that `edits` would add to a text that is `before`.

    The rule. A file that parsed must still parse. In one that did not, an error of the result is
    an old one when the edits did not make it reach further: each piece of the old text that it
    covers was covered by an error already, and a missing token is missing where an error was. An
    error that lies in new text only is old when the edit was made inside an error, as long as there
    are not more errors than before. So an error that edits move is not new, and one that they
    remove pays for no other.

    For Python the interpreter's own compiler, which executes nothing, has the last word where it
    could read `before`: it knows what the grammar lets pass, and what the grammar does not know.
    Where it could not, it stops at its first error, and one that comes earlier than the old one is
    new as well.

    Args:
        before: the text that the edits refer to.
        edits: they must not overlap.
        language: LSP language id.

    Returns:
        Spans in the text after the edits, code points, in order; empty when the edits break
        nothing, and when `before` cannot be parsed at all, as without a grammar.

    Raises:
        ValueError: edits overlap or leave the text.
    """
    after = apply(before, edits)
    if parse(before, language) is None:
        return ()
    shift = _Shift(edits)
    if parse(after, language) is None:
        return tuple(shift.written)
    if language != "python":
        return _added(before, after, shift, language)
    verdict = _python_added(before, after, shift)
    if verdict == ():
        return ()
    added = _added(before, after, shift, language)
    return added or verdict or ()


class _Shift:
    """Where the text of before stands after edits, and the other way round."""

    def __init__(self, edits: Iterable[TextEdit]) -> None:
        self.edits = sorted(edits, key=lambda edit: edit.span)
        self.written: list[Span] = []
        moved = 0
        for edit in self.edits:
            start = edit.span.start + moved
            self.written.append(Span(start, start + len(edit.text)))
            moved += len(edit.text) - len(edit.span)

    def kept(self, span: Span) -> list[Span]:
        """Return the old text inside a span of the result, as spans of before, without gaps' text."""
        pieces: list[Span] = []
        at, moved = span.start, 0
        for edit, written in zip(self.edits, self.written, strict=True):
            if written.start >= span.end:
                break
            if written.start > at:
                pieces.append(Span(at - moved, written.start - moved))
            at = max(at, written.end)
            moved += len(edit.text) - len(edit.span)
        if at < span.end:
            pieces.append(Span(at - moved, span.end - moved))
        return pieces

    def back(self, offset: int) -> Span:
        """Return the place of before that an offset of the result is at.

        Inside of what was written that is all of what it replaced.
        """
        moved = 0
        for edit, written in zip(self.edits, self.written, strict=True):
            if offset < written.start:
                break
            if offset <= written.end:
                return edit.span
            moved += len(edit.text) - len(edit.span)
        return Span(offset - moved, offset - moved)


def _added(before: str, after: str, shift: _Shift, language: str) -> tuple[Span, ...]:
    new, old = errors(after, language), _Spans(errors(before, language))
    more = len(new) > len(old.spans)
    return tuple(span for span in new if not _is_old(span, old, shift, more))


def _is_old(span: Span, old: _Spans, shift: _Shift, more: bool) -> bool:
    pieces = shift.kept(span)
    if pieces:
        return all(old.cover(piece) for piece in pieces)
    # A missing token, or an error in new text only.
    if len(span) and more:
        return False
    return old.touch(shift.back(span.start))


class _Spans:
    """Spans in order, none inside another."""

    def __init__(self, spans: tuple[Span, ...]) -> None:
        self.spans = spans

    def cover(self, other: Span) -> bool:
        """Return True when one of the spans holds all of `other`."""
        place = bisect_right(self.spans, other.start, key=lambda span: span.start)
        return any(other.end <= span.end for span in self.spans[max(place - 2, 0) : place])

    def touch(self, other: Span) -> bool:
        """Return True when one of the spans shares a place with `other`, be it an end."""
        place = bisect_left(self.spans, other.start, key=lambda span: span.end)
        return place < len(self.spans) and self.spans[place].start <= other.end


# What CPython says


@dataclass(frozen=True, slots=True)
class _Reading:
    """How far CPython gets with a text: 0 it does not parse, 1 it does not compile, 2 it does.

    `line`, from 0, is where it stopped; None when it did not say.
    """

    level: int
    line: int | None = None


# warnings.catch_warnings() changes the module's state, so two threads must not do it at once.
_WARNINGS = threading.Lock()


@functools.lru_cache(maxsize=_KEPT)
def _read_python(text: str) -> _Reading:
    source = _SURROGATE.sub("\ufffd", text).removeprefix("\ufeff")
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # Compiled, not only parsed: "return" outside a function is an error of this step.
            compile(source, "<draft>", "exec", dont_inherit=True)
            return _Reading(2)
        except SyntaxError as error:
            line = _line_of(error)
        except (ValueError, RecursionError, MemoryError, OverflowError):
            return _Reading(0)
        try:
            ast.parse(source)
        except SyntaxError as error:
            return _Reading(0, _line_of(error))
        except (ValueError, RecursionError, MemoryError, OverflowError):
            return _Reading(0)
        return _Reading(1, line)


def _line_of(error: SyntaxError) -> int | None:
    return None if error.lineno is None else max(error.lineno - 1, 0)


def _python_added(before: str, after: str, shift: _Shift) -> tuple[Span, ...] | None:
    """Return what CPython says: () for sound, spans of new errors, None when it cannot tell."""
    new = _read_python(after)
    if new.level == 2:
        return ()
    old = _read_python(before)
    spans = (_line_span(after, new.line, shift),)
    if new.level < old.level:
        return spans
    if new.level == 1 or new.line is None or old.line is None:
        return None
    was = _line_span(before, old.line, shift)
    now = shift.back(spans[0].end)
    return spans if now.end < was.start else None


def _line_span(text: str, line: int | None, shift: _Shift) -> Span:
    if line is None:
        return shift.written[0] if shift.written else Span(0, 0)
    lines = split_lines(text)
    line = min(line, len(lines) - 1)
    start = sum(map(len, lines[:line]))
    return Span(start, start + len(without_end(lines[line])))

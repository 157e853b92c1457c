"""Holes from a cursor, a selection, a body, or all bodies that are still to be written.

A hole starts after the indentation of its line and ends before a line end, so that what is frozen
around it stays well formed whatever is put in. Where the text is cut is decided here and nowhere
else; nothing here knows tokens of a model.
"""

from __future__ import annotations

from frostline.context.bodies import body, stubs
from frostline.context.outline import is_comment
from frostline.context.syntax import Tree, parse
from frostline.context.words import (
    BLANK,
    BOM,
    LONGEST_WORD,
    indentation,
    is_blank,
    whole_after,
    whole_before,
    word_end,
    word_start,
)
from frostline.core.regions import Hole
from frostline.core.text import Document, Span, without_end

__all__ = ["at_cursor", "body", "selection", "stubs"]


def at_cursor(document: Document, offset: int) -> Hole:
    """Return the hole at a cursor, which lies at `offset` code points.

    - Text right of the cursor: an empty hole of a single line between two frozen sides.
    - Nothing but blanks there: a hole of a single line up to the line's end, over those blanks.
    - Nothing but blanks on the whole line: the same, and it may grow to several lines, unless the
      cursor is inside a string or a comment.

    The letters of a word that reaches to the cursor are `required`. A cursor inside CRLF or inside
    a combining sequence counts as before it, one before a BOM as behind it.

    Only the blank line asks for a tree: everything else is read off the cursor's own line.
    """
    line = document.line_at(min(offset, len(document)))
    start = document.line_start(line)
    content = without_end(document.lines[line])
    column = max(min(offset - start, len(content)), _margin(document, line))
    column = whole_before(content, column)
    at, left, right = start + column, content[:column], content[column:]
    indent = indentation(left)
    if not is_blank(right):
        return Hole(Span(at, at), indent=indent, required=_word_left(left, document.language))
    span = Span(at, start + len(content))
    if is_blank(left.lstrip(BOM)):
        return Hole(span, multiline=not _in_prose(document, at), indent=indent)
    return Hole(span, indent=indent, required=_word_left(left, document.language))


def _margin(document: Document, line: int) -> int:
    return 1 if line == 0 and document.lines[0].startswith(BOM) else 0


def _word_left(left: str, language: str) -> str:
    return left[word_start(left, len(left), language) :]


def _in_prose(document: Document, offset: int) -> bool:
    """Return True when `offset` lies inside a string or a comment."""
    tree = parse(document.text, document.language)
    if tree is None:
        return False
    here = Span(offset, offset)
    kinds = {
        node.id: kind
        for captures in tree.matches(here)
        for kind in ("string", "substitution")
        for node in captures.get(kind, ())
    }
    byte = tree.byte(offset)
    for node in reversed(tree.path(here)):
        kind = "string" if is_comment(node) else kinds.get(node.id)
        if kind is not None and node.start_byte < byte < node.end_byte:
            return kind == "string"
    return False


def selection(document: Document, span: Span) -> Hole:
    """Return the hole for a selection.

    - It starts in the indentation of a line: the hole starts after the indentation of the first
      line that is not blank.
    - It ends in the indentation of a line, or takes trailing blanks with it: the hole ends before
      the line end of the last line that is not blank.
    - Elsewhere it is widened, as little as needed, to the ends of the word, number, operator or
      escape sequence that it would cut, and never cuts a character.

    A selection of nothing is a cursor. `multiline` when the old text has a line end.
    """
    text = document.text
    start = max(whole_before(text, min(span.start, len(text))), _margin(document, 0))
    end = max(whole_after(text, min(span.end, len(text))), start)
    old = text[start:end]
    ink = old.strip(BLANK + "\r\n")
    if not ink:
        return _blank_selection(document, start, end)
    first = start + old.index(ink)
    last = first + len(ink)
    whole = is_blank(text[_line_start(document, start) : start].lstrip(BOM))
    start = first if whole else _widened(document, start, forward=False)
    line_end = _line_end(document, last)
    if end >= line_end or (whole and is_blank(text[end:line_end])):
        end = line_end
    else:
        end = _widened(document, end, forward=True)
    return _hole(document, start, end)


def _blank_selection(document: Document, start: int, end: int) -> Hole:
    text = document.text
    if is_blank(text[_line_start(document, start) : start].lstrip(BOM)):
        ahead = _line_end(document, start)
        if ahead <= end:
            start = ahead
    if end > start and _line_start(document, end) > start:
        end = max(start, _line_end(document, _line_start(document, end) - 1))
    if start == end or (is_blank(_line(document, start)) and end <= _line_end(document, start)):
        return at_cursor(document, end)
    return _hole(document, start, end)


def _hole(document: Document, start: int, end: int) -> Hole:
    old = document.text[start:end]
    multiline = "\n" in old or "\r" in old
    return Hole(Span(start, end), multiline, indentation(_line(document, start)))


def _line(document: Document, offset: int) -> str:
    return without_end(document.lines[document.line_at(offset)])


def _line_start(document: Document, offset: int) -> int:
    return document.line_start(document.line_at(offset))


def _line_end(document: Document, offset: int) -> int:
    """Return where the line that holds `offset` ends, before its line end."""
    return _line_start(document, offset) + len(_line(document, offset))


def _widened(document: Document, offset: int, *, forward: bool) -> int:
    text, language = document.text, document.language
    left = word_start(text, offset, language)
    right = word_end(text, offset, language)
    if not left < offset < right:
        left = right = offset
    tree = parse(text, language)
    if tree is not None:
        token = _token_around(tree, offset)
        left, right = min(left, token.start), max(right, token.end)
    return whole_after(text, right) if forward else whole_before(text, left)


def _token_around(tree: Tree, offset: int) -> Span:
    """Return the token that a cut at `offset` would divide; an empty span when it divides none."""
    nowhere = Span(offset, offset)
    leaf = tree.path(nowhere)[-1]
    byte = tree.byte(offset)
    if leaf.child_count or not leaf.start_byte < byte < leaf.end_byte:
        return nowhere
    span = tree.span(leaf)
    if len(span) > LONGEST_WORD:
        return nowhere
    # A leaf with blanks in it is prose: the content of a string, a comment, text of a mark-up.
    if any(letter.isspace() for letter in tree.text[span.start : span.end]):
        return nowhere
    prose = is_comment(leaf) or "content" in leaf.type or "fragment" in leaf.type
    return nowhere if prose else span

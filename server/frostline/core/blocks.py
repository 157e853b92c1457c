"""Long rewrites in blocks, one after the other: where a range is cut, and where its later blocks are.

A block is denoised when the one before it is in the file, which is frozen context for it by then. Where
statements begin is told to this; it knows no grammar.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from frostline.core.text import Document, Span, TextEdit

# How much of its length a block has at least, where there are good places to cut it.
_LEAST = 4


def cut(document: Document, span: Span, borders: Mapping[int, int], most: int) -> tuple[Span, ...]:
    """Return `span` in blocks of at most `most` lines, cut where lines begin.

    A block ends at the outermost border that it can reach, and at the last of those: so functions stay
    whole where they fit, and long ones are cut between their own statements.

    Args:
        borders: the lines (from 0) at which something begins, with how deep it is; a range without any is cut
            at lines as they come.
        most: lines of a block; 0 leaves the range whole.
    """
    first = document.line_at(span.start)
    end, starts = first + lines(document, span), [first]
    while most and end - starts[-1] > most:
        starts.append(_next(starts[-1], most, borders))
    edges = [span.start, *(document.line_start(line) for line in starts[1:]), span.end]
    return tuple(Span(a, b) for a, b in itertools.pairwise(edges))


def lines(document: Document, span: Span) -> int:
    """Return how many lines a range touches; one that ends where a line begins does not touch that."""
    first, last = document.line_at(span.start), document.line_at(span.end)
    ends_before = last > first and document.line_start(last) == span.end
    return last - first + (0 if ends_before else 1)


def _next(start: int, most: int, borders: Mapping[int, int]) -> int:
    """Return the line at which the next block begins."""
    for least in (most // _LEAST, 0):
        within = [line for line in range(start + least + 1, start + most + 1) if line in borders]
        if within:
            return min(within, key=lambda line: (borders[line], -line))
    return start + most


def later(document: Document, blocks: Sequence[Span]) -> tuple[Span, ...]:
    """Return those blocks that hold something to denoise."""
    return tuple(block for block in blocks if document.slice(block).strip())


def carried(blocks: Iterable[Span], edits: Sequence[TextEdit]) -> tuple[Span, ...]:
    """Return where blocks are after edits, each in terms of the text that the one before it left.

    What is typed inside a block belongs to it, what is typed at its edge does not. One whose text is
    deleted is gone.
    """
    now = tuple(blocks)
    for edit in edits:
        now = tuple(moved for block in now if (moved := _once(block, edit)) is not None)
    return now


def _once(block: Span, edit: TextEdit) -> Span | None:
    grown = len(edit.text) - len(edit.span)
    if edit.span.end <= block.start:
        return block.moved(grown)
    if edit.span.start >= block.end:
        return block
    if block.start <= edit.span.start and edit.span.end <= block.end:
        start, end = block.start, block.end + grown
    elif edit.span.start < block.start:
        start, end = edit.span.start + len(edit.text), block.end + grown
    else:
        start, end = block.start, edit.span.start
    return Span(start, end) if start < end else None

"""Accepting a draft in parts: all, one hole, a line, a word, or what is stable now.

A part of a hole is always the start of its draft. It goes in ahead of the hole's old text, which the
last part then replaces, so each part is an edit of its own and what is left needs no new run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from frostline.core.provisional import Draft, Piece, PieceState, line_end_near, with_line_ends
from frostline.core.regions import Hole, Regions
from frostline.core.text import Document, Span, TextEdit

# A word with the blanks ahead of it, or a run of what is neither.
_WORD = re.compile(r"\s*(?:\w+|[^\w\s]+)|\s+")


class Scope(Enum):
    """How much of a draft is accepted."""

    ALL = "all"
    HOLE = "hole"
    LINE = "line"
    WORD = "word"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class Part:
    """What an accept takes, and what it leaves.

    Attributes:
        drafts: what is applied, one for each hole that takes part.
        edits: the edits of it, in the document as it is.
        taken: for each hole of the session, how much of its draft goes in; None for the whole hole.
        left: the holes that remain, where they will be after the edits.
    """

    drafts: tuple[Draft, ...]
    edits: tuple[TextEdit, ...]
    taken: tuple[int | None, ...]
    left: tuple[Hole, ...]

    @property
    def whole(self) -> bool:
        """Whether some hole goes in as a whole, its old text with it."""
        return any(length is None for length in self.taken)


def part(
    document: Document,
    regions: Regions,
    drafts: Sequence[Draft],
    scope: Scope,
    hole: int | None,
    *,
    settled: bool,
) -> Part | None:
    """Return what an accept of this scope takes of the drafts, or None where it takes nothing.

    While the run goes on (`settled` False) lines and words are taken of what is stable only.
    """
    taken = _taken(drafts, scope, hole, settled=settled)
    if not any(one is None or one > 0 for one in taken):
        return None
    edits, applied, left, shift = [], [], [], 0
    for each, draft, length in zip(regions.holes, drafts, taken, strict=True):
        if length == 0:
            left.append(replace(each, span=each.span.moved(shift)))
            continue
        whole = length is None
        start = draft if whole else start_of(draft, length or 0)
        text = with_line_ends(start.text, line_end_near(document, each.span.start))
        span = each.span if whole else Span(each.span.start, each.span.start)
        if text != document.slice(span):
            edits.append(TextEdit(span, text))
        applied.append(start)
        if not whole:
            grown = len(text)
            left.append(
                replace(each, span=each.span.moved(shift + grown), taken=each.taken + start.text)
            )
        shift += len(text) - len(span)
    return Part(tuple(applied), tuple(edits), taken, tuple(left))


def _taken(
    drafts: Sequence[Draft], scope: Scope, hole: int | None, *, settled: bool
) -> tuple[int | None, ...]:
    if scope is Scope.ALL or (scope is Scope.STABLE and settled):
        return tuple(None for _ in drafts)
    if scope is Scope.STABLE:
        return tuple(len(stable_start(draft)) for draft in drafts)
    first = next((index for index, draft in enumerate(drafts) if draft.text), 0)
    index = first if hole is None else hole
    lengths: list[int | None] = [0] * len(drafts)
    if 0 <= index < len(drafts):
        lengths[index] = _length(drafts[index], scope, settled=settled)
    return tuple(lengths)


def _length(draft: Draft, scope: Scope, *, settled: bool) -> int | None:
    if scope is Scope.HOLE:
        return None
    text = settled_start(draft) if settled else stable_start(draft)
    if scope is Scope.WORD:
        match = _WORD.match(text)
        length = match.end() if match else 0
    else:
        end = text.find("\n")
        length = end + 1 if end >= 0 else (len(text) if text == draft.text else 0)
    return None if settled and length and length == len(draft.text) else length


def start_of(draft: Draft, length: int) -> Draft:
    """Return the first `length` code points of a draft."""
    return _cut(draft, 0, length)


def without_start(draft: Draft, length: int) -> Draft:
    """Return the draft without its first `length` code points."""
    return _cut(draft, length, None) if length else draft


def _cut(draft: Draft, start: int, end: int | None) -> Draft:
    pieces, place = [], 0
    stop = len(draft.text) if end is None else end
    for piece in draft.pieces:
        first, last = max(start - place, 0), min(stop - place, len(piece.text))
        if first < last:
            pieces.append(Piece(piece.text[first:last], piece.state, piece.confidence))
        place += len(piece.text)
    whole = end is None
    return Draft(tuple(pieces), draft.complete if whole else True, draft.confidence)


def settled_start(draft: Draft) -> str:
    """Return the text of a draft up to its first open piece."""
    return _until(draft, {PieceState.OPEN})


def stable_start(draft: Draft) -> str:
    """Return the text of a draft up to its first piece that can still change."""
    return _until(draft, {PieceState.OPEN, PieceState.DRAFT})


def _until(draft: Draft, states: set[PieceState]) -> str:
    text = ""
    for piece in draft.pieces:
        if piece.state in states:
            break
        text += piece.text
    return text


def after(taken: Part, drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Return what is left of the drafts, one for each hole that remains."""
    return tuple(
        without_start(draft, length)
        for draft, length in zip(drafts, taken.taken, strict=True)
        if length is not None
    )

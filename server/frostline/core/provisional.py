"""Drafts, and the edits they would make.

A draft is a hole's text in pieces, each open, draft or stable. It belongs to a version of the
document and never enters it from here: `edits_for` says what an accept would change, and no more
than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from frostline.core.regions import Gap, Hole, Pinned, Regions
from frostline.core.text import Document, Span, TextEdit, line_end


class PieceState(Enum):
    """How settled a piece of a draft is."""

    OPEN = "open"
    DRAFT = "draft"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of a draft in one state; `confidence` from 0 to 1."""

    text: str
    state: PieceState
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Draft:
    """What stands in one hole after a step. `confidence` is the geometric mean over its tokens."""

    pieces: tuple[Piece, ...] = ()
    complete: bool = True
    confidence: float = 0.0

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def settled(self) -> bool:
        """True when no piece is open."""
        return all(piece.state is not PieceState.OPEN for piece in self.pieces)

    @property
    def stable(self) -> bool:
        """True when every piece is stable."""
        return all(piece.state is PieceState.STABLE for piece in self.pieces)


def merged(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Return the pieces with neighbours of one state joined and empty ones dropped."""
    result: list[Piece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if result and result[-1].state is piece.state:
            last = result[-1]
            length = len(last.text) + len(piece.text)
            mean = (last.confidence * len(last.text) + piece.confidence * len(piece.text)) / length
            result[-1] = Piece(last.text + piece.text, piece.state, mean)
        else:
            result.append(piece)
    return tuple(result)


def line_end_near(document: Document, offset: int) -> str:
    """Return the line end that new lines at `offset` should have.

    It is that of the line itself, else of the nearest line above, else of the first below; LF in a
    file of one line.
    """
    line = document.line_at(offset)
    for index in (*range(line, -1, -1), *range(line + 1, len(document.lines))):
        if end := line_end(document.lines[index]):
            return end
    return "\n"


def with_line_ends(text: str, end: str) -> str:
    """Return LF text with the document's line ends."""
    return text if end == "\n" else text.replace("\n", end)


def edits_for(
    document: Document, regions: Regions, drafts: Sequence[Draft]
) -> tuple[TextEdit, ...]:
    """Return the edits that put `drafts`, one for each hole, into `document`.

    A hole whose draft equals what stands there gives no edit.
    """
    edits = []
    for hole, draft in zip(regions.holes, drafts, strict=True):
        text = with_line_ends(draft.text, line_end_near(document, hole.span.start))
        if text != document.slice(hole.span):
            edits.append(TextEdit(hole.span, text))
    return tuple(edits)


def smallest(document: Document, edit: TextEdit) -> TextEdit:
    """Return the edit without what both sides share at its start and its end.

    A CRLF is never cut in two: an editor may count its halves as one line end.
    """
    old, new = document.slice(edit.span), edit.text
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while head and (_cuts_line_end(old, head) or _cuts_line_end(new, head)):
        head -= 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    while tail and (_cuts_line_end(old, len(old) - tail) or _cuts_line_end(new, len(new) - tail)):
        tail -= 1
    span = Span(edit.span.start + head, edit.span.end - tail)
    return TextEdit(span, new[head : len(new) - tail])


def _cuts_line_end(text: str, at: int) -> bool:
    return text[at - 1 : at + 1] == "\r\n"


def errors_by_hole(
    document: Document, regions: Regions, drafts: Sequence[Draft], errors: Sequence[Span]
) -> tuple[tuple[Span, ...], ...]:
    """Return, for each hole, which spans of its draft lie under `errors` of the text after the edits.

    An error outside every hole was still caused by one: a bracket left open shows where the file
    ends. Then all holes are under it, as a whole.
    """
    found: list[tuple[Span, ...]] = []
    shift = 0
    for hole, draft in zip(regions.holes, drafts, strict=True):
        end = line_end_near(document, hole.span.start)
        text = with_line_ends(draft.text, end)
        start = hole.span.start + shift
        here = []
        for error in errors:
            if error.start <= start + len(text) and start <= error.end:
                first, last = (
                    min(max(at - start, 0), len(text)) for at in (error.start, error.end)
                )
                cuts = (len(text[:at].replace(end, "\n")) for at in (first, last))
                here.append(Span(*cuts))
        found.append(tuple(here))
        shift += len(text) - len(hole.span)
    if errors and not any(found):
        return tuple((Span(0, len(draft.text)),) for draft in drafts)
    return tuple(found)


def composed(hole: Hole, gaps: Sequence[Draft]) -> Draft:
    """Return the draft of a hole from the drafts of its gaps; pinned parts stand firm between them."""
    pieces: list[Piece] = []
    complete, confidences = True, []
    remaining = iter(gaps)
    for part in hole.parts:
        if isinstance(part, Pinned):
            pieces.append(Piece(part.text, PieceState.STABLE, 1.0))
            continue
        gap = next(remaining)
        pieces += gap.pieces
        complete = complete and gap.complete
        confidences.append(gap.confidence)
    confidence = sum(confidences) / len(confidences) if confidences else 1.0
    return Draft(merged(pieces), complete, confidence)


def by_hole(regions: Regions, gaps: tuple[Draft, ...]) -> tuple[Draft, ...]:
    """Return one draft for each hole, from one for each gap."""
    drafts, used = [], 0
    for hole in regions.holes:
        drafts.append(composed(hole, gaps[used : used + hole.gaps]))
        used += hole.gaps
    if used != len(gaps):
        raise ValueError(f"{len(gaps)} drafts for {used} gaps")
    return tuple(drafts)


def pinned(hole: Hole, draft: Draft, spans: Iterable[Span]) -> Hole:
    """Return the hole with those spans of its draft frozen, earlier pins kept, the rest open again.

    Spans count code points of the draft's text.
    """
    text = draft.text
    keep = _joined_spans([*spans, *_pinned_spans(hole, text)])
    return hole.anew(*_parts(text, keep))


def reopened(hole: Hole, draft: Draft, spans: Iterable[Span]) -> Hole:
    """Return the hole with only those spans of its draft open, and everything else frozen.

    Pins of the user stay: a span that falls on one opens nothing of it.
    """
    text = draft.text
    opened = [span for span in _joined_spans(spans) if span.start < len(text) or not text]
    keep, reached = [], 0
    for span in opened:
        keep.append(Span(reached, min(max(span.start, reached), len(text))))
        reached = min(max(span.end, reached), len(text))
    keep.append(Span(reached, len(text)))
    keep = _joined_spans([*(span for span in keep if len(span)), *_pinned_spans(hole, text)])
    return hole.anew(*_parts(text, keep))


def _pinned_spans(hole: Hole, text: str) -> list[Span]:
    """Return where the hole's pins lie in what is left of its draft; what is taken is no pin any more."""
    whole, taken = hole.taken + text, len(hole.taken)
    spans, start = [], 0
    for part in hole.parts:
        if isinstance(part, Pinned):
            # The draft is the parts in order, so a pin is never ahead of the one before it.
            start = whole.find(part.text, start)
            end = start + len(part.text)
            if end > taken:
                spans.append(Span(max(start - taken, 0), end - taken))
            start = end
    return spans


def _joined_spans(spans: Iterable[Span]) -> list[Span]:
    result: list[Span] = []
    for span in sorted(spans):
        if result and span.start <= result[-1].end:
            result[-1] = Span(result[-1].start, max(result[-1].end, span.end))
        else:
            result.append(span)
    return result


def _parts(text: str, keep: Sequence[Span]) -> tuple[Gap | Pinned, ...]:
    parts: list[Gap | Pinned] = []
    reached = 0
    for span in keep:
        if span.start > reached:
            parts.append(Gap(old=text[reached : span.start]))
        if len(span):
            parts.append(Pinned(text[span.start : span.end]))
        reached = span.end
    if reached < len(text) or not parts:
        parts.append(Gap(old=text[reached:]))
    return tuple(parts)

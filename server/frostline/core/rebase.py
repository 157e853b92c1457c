"""Holes under a person who keeps typing: where they are after an edit, and what became of them.

An edit outside a hole moves it. Text typed inside a hole is the user's from then on: it is frozen, and
the hole goes on at both sides of it. An edit across a hole's edge takes that much of it away. What
stands right next to a hole decides what fits into it, so an edit on its own lines counts as near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from frostline.core.regions import Gap, Hole
from frostline.core.text import Document, Span, TextEdit


@dataclass(frozen=True, slots=True)
class Moved:
    """Holes after edits.

    Attributes:
        holes: where they are now; fewer or more than before where they were cut.
        kept: True while each hole is the one it was, so that its draft still belongs to it.
        near: True when text on a hole's own lines changed outside of it.
        window: the stretch that the model saw, where it is now.
        seen: True when the model saw text that changed.
    """

    holes: tuple[Hole, ...]
    kept: bool
    near: bool
    window: Span | None
    seen: bool


def moved(
    document: Document, holes: Sequence[Hole], window: Span | None, edits: Sequence[TextEdit]
) -> Moved:
    """Return the holes of `document` after `edits`, each in terms of the text the last one left."""
    now = Moved(tuple(holes), True, False, window, False)
    text = document.text
    for edit in edits:
        now = _once(text, now, edit)
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return _joined(now)


def _joined(now: Moved) -> Moved:
    """Return the same with holes that came to touch made one."""
    holes: list[Hole] = []
    for hole in now.holes:
        if holes and holes[-1].span.end >= hole.span.start:
            whole = Span(holes[-1].span.start, max(holes[-1].span.end, hole.span.end))
            holes[-1] = _fresh(holes[-1], whole)
        else:
            holes.append(hole)
    return now if len(holes) == len(now.holes) else replace(now, holes=tuple(holes), kept=False)


def _once(text: str, before: Moved, edit: TextEdit) -> Moved:
    holes: list[Hole] = []
    kept, near = before.kept, before.near
    for hole in before.holes:
        after = _hole(hole, edit)
        kept = kept and len(after) == 1 and len(after[0].span) == len(hole.span)
        near = near or (_outside(hole, edit) and _beside(text, hole, edit))
        holes += after
    window, seen = before.window, before.seen
    if window is not None:
        seen = seen or (window.start <= edit.span.end and edit.span.start <= window.end)
        window = _stretched(window, edit)
    return Moved(tuple(holes), kept, near, window, seen)


def _outside(hole: Hole, edit: TextEdit) -> bool:
    return edit.span.end <= hole.span.start or edit.span.start >= hole.span.end


def _beside(text: str, hole: Hole, edit: TextEdit) -> bool:
    """Return True when the edit is on the lines on which the hole starts or ends."""
    start = max(text.rfind("\n", 0, hole.span.start), text.rfind("\r", 0, hole.span.start)) + 1
    ends = [
        at for at in (text.find("\n", hole.span.end), text.find("\r", hole.span.end)) if at >= 0
    ]
    end = min(ends, default=len(text))
    return edit.span.end >= start and edit.span.start <= end


def _hole(hole: Hole, edit: TextEdit) -> list[Hole]:
    span, grown = hole.span, len(edit.text) - len(edit.span)
    if edit.span.end < span.start or (edit.span.end == span.start and len(edit.span)):
        if edit.span.end > span.start - len(hole.required + hole.taken):
            # In the word that the hole goes on with; the next run goes on with what there is.
            hole = replace(hole, required="")
        return [replace(hole, span=span.moved(grown))]
    if edit.span.start > span.end or (edit.span.start == span.end and len(span)):
        return [hole]
    if not len(edit.span) and edit.span.start == span.start:
        # Typed at the hole's start, which for a cursor is the hole: it goes on behind the text.
        behind = hole.behind(hole.taken + edit.text)
        return [replace(behind, span=span.moved(grown), taken="")]
    return _cut(hole, edit)


def _cut(hole: Hole, edit: TextEdit) -> list[Hole]:
    """Return what is left of a hole that an edit reaches into."""
    left = Span(hole.span.start, max(hole.span.start, min(edit.span.start, hole.span.end)))
    right_length = max(hole.span.end - edit.span.end, 0)
    right_start = edit.span.start + len(edit.text)
    right = Span(right_start, right_start + right_length)
    if not edit.text:
        joined = Span(left.start, left.start + len(left) + right_length)
        start = min(left.start, edit.span.start)
        joined = joined.moved(start - left.start)
        return [_fresh(hole, joined)] if len(joined) else []
    return [_fresh(hole, span) for span in (left, right) if len(span)]


def _fresh(hole: Hole, span: Span) -> Hole:
    # Whatever was pinned or accepted was of a hole that is no more.
    return replace(hole, span=span, parts=(Gap(),), taken="", required="")


def _stretched(window: Span, edit: TextEdit) -> Span:
    grown = len(edit.text) - len(edit.span)
    if edit.span.end < window.start:
        return window.moved(grown)
    if edit.span.start > window.end:
        return window
    start = min(window.start, edit.span.start)
    return Span(start, max(window.end, edit.span.end) + grown)

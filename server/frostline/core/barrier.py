"""The commit barrier: the one way into somebody's file.

An edit is to the user's file what a tool call is to the world: proposed freely, executed once. The
rules are asked in the order of DESIGN section 6 and the first that says no is the answer. The
barrier does not know a parser; the caller hands it what a parse of the result said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from frostline.core.provisional import Draft, edits_for
from frostline.core.regions import Regions
from frostline.core.text import Document, Span, TextEdit, apply


class Refusal(Enum):
    """Why nothing is applied: a code for programs and the sentence that a user reads."""

    INCOMPLETE = "incomplete", "The draft is not finished; wait for it or accept what is stable."
    UNSTABLE = "unstable", "The draft is still changing; wait until it is stable."
    STALE = "stale", "The text changed while it was being drafted; ask again."
    FROZEN = "frozen", "The draft would change text outside the selection; it was dropped."
    UNSOUND = "unsound", "The draft would break the file's syntax; try again or select more."
    APPLIED = "applied", "This draft is already in the file."
    EMPTY = "empty", "The model has nothing to say here."
    LOST = "lost", "The model worker stopped; ask again and it will be started anew."
    FAILED = "failed", "The model could not do this."
    CLOSED = "closed", "The file was closed; its draft is gone."
    UNKNOWN = "unknown", "There is no such draft any more; ask again."
    REPLACED = "replaced", "A newer request took the place of this one."
    NOTHING = "nothing", "There is nothing to fill here."
    OVERLAP = "overlap", "These holes overlap."
    SCOPE = "scope", "Drafts are accepted as a whole here."
    OFF = "off", "Frostline is switched off; set `enabled` to use it."
    EXCLUDED = "excluded", "This file is kept from the model."

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Commit:
    """What may be applied, once, to this version of this document.

    Attributes:
        key: names this commit; a repeated accept gives the same commit, and applies nothing new.
        version: the document version that every rule was asked about.
    """

    key: str
    uri: str
    version: int
    edits: tuple[TextEdit, ...]


def check(
    key: str,
    drafted_on: Document,
    current: Document | None,
    regions: Regions,
    drafts: Sequence[Draft],
    *,
    settled: bool,
    by_request: bool,
    breaks_syntax: bool,
    applied: frozenset[str] = frozenset(),
) -> Commit | Refusal:
    """Return what may be applied, or the first reason why nothing may.

    Args:
        key: the idempotency key of this commit.
        drafted_on: the document that the draft was made on.
        current: the document as it is now; None when it is closed.
        drafts: one for each hole of `regions`.
        settled: whether the run has ended, converged or at the end of its step budget.
        by_request: a user asked for it, so a draft that ended by its step budget will do.
        breaks_syntax: whether the result has syntax errors that `drafted_on` does not have.
        applied: keys of the commits that were made.
    """
    if current is None:
        return Refusal.CLOSED
    if any(not draft.complete or not draft.settled for draft in drafts):
        return Refusal.INCOMPLETE
    if not settled or not (by_request or all(draft.stable for draft in drafts)):
        return Refusal.UNSTABLE
    if current.version != drafted_on.version or current.uri != drafted_on.uri:
        return Refusal.STALE
    edits = edits_for(drafted_on, regions, drafts)
    if not keeps_frozen(drafted_on.text, regions, edits):
        return Refusal.FROZEN
    if breaks_syntax:
        return Refusal.UNSOUND
    if key in applied:
        return Refusal.APPLIED
    return Commit(key, current.uri, current.version, edits)


def keeps_frozen(before: str, regions: Regions, edits: Sequence[TextEdit]) -> bool:
    """Return True when `edits` leave every frozen code point of `before` as it is.

    The result is built and compared, not deduced from the spans: a wrong deduction is the very
    thing that this looks for.
    """
    if regions.length != len(before):
        return False
    if any(edit.span.overlaps(span) for edit in edits for span in regions.frozen):
        return False
    try:
        after = apply(before, edits)
    except ValueError:
        return False
    shift, place = 0, 0
    ordered = sorted(edits, key=lambda edit: edit.span)
    for span in regions.frozen:
        while place < len(ordered) and ordered[place].span.end <= span.start:
            shift += len(ordered[place].text) - len(ordered[place].span)
            place += 1
        if not _same(before, span, after, shift):
            return False
    return True


def _same(before: str, span: Span, after: str, shift: int) -> bool:
    return before[span.start : span.end] == after[span.start + shift : span.end + shift]

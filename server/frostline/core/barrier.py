"""The commit barrier: the one way into somebody's file.

An edit is to the user's file what a tool call is to the world: proposed freely, executed once. The
rules are asked in the order of DESIGN section 6 and the first that says no is the answer. The
barrier does not know a parser; the caller hands it what a parse of the result said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from frostline.core.provisional import Draft
from frostline.core.regions import Regions
from frostline.core.text import Document, Span, TextEdit, apply


class Refusal(Enum):
    """Why nothing is applied: a code for programs and the sentence that a user reads."""

    INCOMPLETE = "incomplete", "The draft is not finished; wait for it or accept what is stable."
    UNSTABLE = "unstable", "The draft is still changing; wait until it is stable."
    STALE = "stale", "The text changed while it was being drafted; it is drafted again."
    GONE = "gone", "The text that was being replaced is gone."
    FROZEN = "frozen", "The draft would change text outside the selection; it was dropped."
    FORBIDDEN = "forbidden", "This file may not be changed."
    UNSOUND = "unsound", "The draft would break the file's syntax; try again or select more."
    APPLIED = "applied", "This draft is already in the file."
    RISKY = "risky", "This edit waits for you to accept it."
    EMPTY = "empty", "The model has nothing to say here."
    LOST = "lost", "The model worker stopped; ask again and it will be started anew."
    FAILED = "failed", "The model could not do this."
    CLOSED = "closed", "The file was closed; its draft is gone."
    UNKNOWN = "unknown", "There is no such draft any more; ask again."
    REPLACED = "replaced", "A newer request took the place of this one."
    NOTHING = "nothing", "There is nothing to fill here."
    OVERLAP = "overlap", "These holes overlap."
    SCOPE = "scope", "There is nothing more to accept in this draft."
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


@dataclass(frozen=True, slots=True)
class Findings:
    """What others found out about an edit; the barrier knows no parser, no disk and no settings.

    Attributes:
        forbidden: why this file may not be changed, or nothing.
        breaks_syntax: the result has syntax errors that the file does not have.
        complaint: a check of the user's has something against the result, and what.
        risk: why somebody has to look at the edit first, or nothing.
    """

    forbidden: str = ""
    breaks_syntax: bool = False
    complaint: str = ""
    risk: str = ""

    @property
    def sound(self) -> bool:
        """Whether nothing was found that refuses the edit outright."""
        return not (self.forbidden or self.breaks_syntax)


NO_FINDINGS = Findings()


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal, and what is to be said about it in this case."""

    refusal: Refusal
    message: str


def check(
    key: str,
    drafted_on: Document,
    current: Document | None,
    regions: Regions,
    drafts: Sequence[Draft],
    edits: Sequence[TextEdit],
    *,
    settled: bool,
    by_request: bool,
    findings: Findings,
    applied: frozenset[str] = frozenset(),
) -> Commit | Refused:
    """Return what may be applied, or the first reason why nothing may.

    Args:
        key: the idempotency key of this commit.
        drafted_on: the document that the draft is made for, moved along with edits elsewhere.
        current: the document as it is now; None when it is closed.
        drafts: what is to be applied, one for each hole that takes part.
        edits: the edits that this comes to, in `drafted_on`.
        settled: whether nothing of `drafts` can still change: the run ended, or it is stable.
        by_request: a user asked for it, so a draft that ended by its step budget will do.
        findings: what a parser, the disk and the settings say.
        applied: keys of the commits that were made.
    """
    refusal, message = _first(
        [
            (current is None, Refusal.CLOSED, ""),
            (any(not one.complete or not one.settled for one in drafts), Refusal.INCOMPLETE, ""),
            (
                not settled or not (by_request or all(draft.stable for draft in drafts)),
                Refusal.UNSTABLE,
                "",
            ),
            (_another(drafted_on, current), Refusal.STALE, ""),
            (not keeps_frozen(drafted_on.text, regions, edits), Refusal.FROZEN, ""),
            (bool(findings.forbidden), Refusal.FORBIDDEN, findings.forbidden),
            (findings.breaks_syntax, Refusal.UNSOUND, ""),
            (bool(findings.complaint), Refusal.UNSOUND, findings.complaint),
            (key in applied, Refusal.APPLIED, ""),
            (bool(findings.risk) and not by_request, Refusal.RISKY, findings.risk),
        ]
    )
    if refusal is not None:
        return Refused(refusal, message or refusal.message)
    return Commit(key, drafted_on.uri, drafted_on.version, tuple(edits))


def _first(rules: Sequence[tuple[bool, Refusal, str]]) -> tuple[Refusal | None, str]:
    return next(((refusal, words) for broken, refusal, words in rules if broken), (None, ""))


def _another(drafted_on: Document, current: Document | None) -> bool:
    return current is not None and (
        current.version != drafted_on.version
        or current.uri != drafted_on.uri
        or (current is not drafted_on and current.text != drafted_on.text)
    )


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

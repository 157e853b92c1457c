"""The life of one draft: what may happen is a table, what it causes is a list.

    MOVES     (state, event) -> the states it can lead to, and the function that decides

States, events and effects are in `events.py`. A pair that is not in the table raises and changes nothing. There is no I/O and no waiting here, and
no parser: whether a draft breaks the file is part of the event that brings it.

The document of a session is the one that the editor has now. Edits elsewhere move the holes and the
draft stays; an edit in or beside a hole has it drafted again (`rebase.py` says which is which).

A long rewrite is several sessions, one for each block: the end of one in the file begins the next, and
any other end ends what was left (`blocks.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from frostline.core import blocks, partial
from frostline.core.barrier import Commit, Refusal, Refused, check
from frostline.core.events import (
    ENDS,
    Accepted,
    Answer,
    Applied,
    Ask,
    Begun,
    Closed,
    Edited,
    Effect,
    Event,
    Failed,
    Finished,
    Follow,
    PinnedDown,
    Refined,
    Rejected,
    Replaced,
    Sent,
    Show,
    State,
    Stepped,
    Stop,
    Tell,
    WentBack,
    Wish,
)
from frostline.core.partial import Part
from frostline.core.provisional import Draft, by_hole, pinned, reopened
from frostline.core.rebase import Moved, moved
from frostline.core.regions import Gap, Hole, Regions
from frostline.core.text import Document, Span, TextEdit, apply

MAX_REPAIRS = 3
# After an edit that the model saw, this share of a finished draft is noised again, the least likely
# tokens first, so what the edit does not touch stays.
RECHECK_STRENGTH = 0.3


@dataclass(frozen=True, slots=True)
class Kept:
    """A draft that was ready once, the holes that it was for, and whether it broke the syntax."""

    regions: Regions
    drafts: tuple[Draft, ...]
    unsound: bool


@dataclass(frozen=True, slots=True)
class Session:
    """One draft. Immutable: `on` gives the next one.

    Attributes:
        document: the version that the draft is for: the editor's present one.
        regions: what is frozen and what is open in it.
        drafts: one for each hole, empty until the first step.
        attempts: how many runs were asked for.
        repairs: how many of them were for syntax since the user last asked for something.
        settled: the last run has ended.
        unsound: the draft breaks the syntax, and no try mended it.
        stale: the present run is for an edit in or beside a hole; the draft before it is void.
        changed: the model saw text that the user changed since.
        window: the stretch of the document that the run was shown.
        commit: the edit that is on its way, and what stands where once it is made.
        answers: commits by the client's keys.
        earlier: drafts of earlier runs, the latest last.
        later: blocks that are begun when this one is in the file, the next first.
    """

    id: str
    document: Document
    regions: Regions
    wish: Wish = field(default_factory=Wish)
    state: State = State.DRAFTING
    drafts: tuple[Draft, ...] = ()
    attempts: int = 0
    repairs: int = 0
    settled: bool = False
    unsound: bool = False
    stale: bool = False
    changed: bool = False
    window: Span | None = None
    refusal: Refusal | None = None
    commit: Commit | None = None
    part: Part | None = None
    accepts: int = 0
    applied: frozenset[str] = field(default_factory=frozenset)
    answers: tuple[tuple[str, Commit], ...] = ()
    earlier: tuple[Kept, ...] = ()
    later: tuple[Span, ...] = ()

    def on(self, event: Event) -> tuple[Session, tuple[Effect, ...]]:
        """Return the session after `event`, and what has to be done.

        Raises:
            UnexpectedEvent: the event has no place in this state; nothing changed.
        """
        move = MOVES.get((self.state, type(event)))
        if move is None:
            raise UnexpectedEvent(f"{type(event).__name__} while {self.state.value}")
        session, effects = move.by(self, event)
        assert session.state in move.to, f"{type(event).__name__} led to {session.state}"
        return session, effects


class UnexpectedEvent(Exception):
    """An event that has no place in the state; a bug of the caller or a message out of order."""


Outcome = tuple[Session, tuple[Effect, ...]]


@dataclass(frozen=True, slots=True)
class Move:
    """Where an event can lead to, and the function that decides."""

    to: frozenset[State]
    by: Callable[[Session, Any], Outcome]


# --- what each event does -----------------------------------------------------------------------


def _begin(session: Session, _: Begun) -> Outcome:
    return _ask(session, session.regions, session.wish)


def _ask(
    session: Session, regions: Regions, wish: Wish, *, again: bool = False, calm: bool = False
) -> Outcome:
    asked = replace(
        session,
        regions=regions,
        wish=wish,
        state=State.DRAFTING,
        attempts=session.attempts + 1,
        settled=False,
        unsound=False,
        changed=False,
        window=None,
    )
    return asked, (Ask(regions, wish, session.attempts, again, calm), Tell(State.DRAFTING))


def _send(session: Session, event: Sent) -> Outcome:
    return replace(session, window=event.window), ()


def _step(session: Session, event: Stepped) -> Outcome:
    drafts = by_hole(session.regions, event.gaps)
    if not _continues(session, drafts):
        # What was accepted or typed along is no longer what the model says: it is frozen now.
        return _ask(session, _opened(session.regions), session.wish)
    drafts = _rest(session, drafts)
    after = replace(session, drafts=drafts, stale=False)
    if session.state is State.COMMITTING:
        return after, ()
    return after, (Show(event.step, event.steps, drafts),)


def _continues(session: Session, drafts: Sequence[Draft]) -> bool:
    return all(
        draft.text.startswith(hole.taken)
        for hole, draft in zip(session.regions.holes, drafts, strict=True)
    )


def _rest(session: Session, drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Return the drafts without what is in the document already."""
    return tuple(
        partial.without_start(draft, len(hole.taken))
        for hole, draft in zip(session.regions.holes, drafts, strict=True)
    )


def _opened(regions: Regions) -> Regions:
    """Return the regions with nothing pinned and nothing taken: whole gaps."""
    holes = (hole.anew(Gap()) for hole in regions.holes)
    return regions.with_holes(holes)


def _finish(session: Session, event: Finished) -> Outcome:
    drafts = by_hole(session.regions, event.gaps)
    if not _continues(session, drafts):
        return _ask(session, _opened(session.regions), session.wish)
    taken = any(hole.taken for hole in session.regions.holes)
    drafts = _rest(session, drafts)
    session = replace(session, drafts=drafts, settled=True, stale=False)
    if session.state is State.COMMITTING:
        return session, ()
    if not _has_more(session):
        if taken:
            return _committed(session)
        return _end(session, State.REFUSED, Refusal.EMPTY)
    if session.changed:
        return _recheck(session, calm=False)
    complete = all(draft.complete for draft in drafts)
    broken = event.broken
    if not complete:
        # Half a character at the end: nothing of a syntax tree would make sense.
        broken = tuple((Span(0, len(draft.text)),) for draft in drafts)
    if any(broken) and session.repairs < MAX_REPAIRS and not taken:
        mended = _repair(session, broken)
        if mended is not None:
            return mended
    if not complete:
        return _end(session, State.REFUSED, Refusal.INCOMPLETE)
    session = replace(session, unsound=any(broken), state=State.READY)
    # The last step can have shown less than the run's end: a reader sees what an accept would take.
    refusal = Refusal.UNSOUND if session.unsound else None
    return session, (Show(0, 0, drafts), Tell(State.READY, refusal))


def _has_more(session: Session) -> bool:
    """Return whether an accept of all would change anything: there is text to write or to take away."""
    replaced = any(len(hole.span) for hole in session.regions.holes)
    return replaced or any(draft.text for draft in session.drafts)


def _repair(session: Session, broken: tuple[tuple[Span, ...], ...]) -> Outcome | None:
    """Open the slots under the errors and denoise again, wider each time.

    First what the parser points at; it often points behind the cause, so then the lines of it; at
    last the whole of each hole that has an error. None where everything there is pinned.
    """
    holes = []
    for hole, draft, spans in zip(session.regions.holes, session.drafts, broken, strict=True):
        wider = [_widened(draft.text, span, session.repairs) for span in spans]
        holes.append(reopened(hole, draft, wider))
    if not any(hole.gaps for hole in holes):
        return None
    # What stood in the gap is what was wrong with it, so it is no start for the next try.
    wish = replace(session.wish, strength=1.0)
    asked, effects = _ask(
        replace(session, repairs=session.repairs + 1),
        session.regions.with_holes(holes),
        wish,
        again=True,
    )
    return replace(asked, wish=session.wish), effects


def _widened(text: str, span: Span, repairs: int) -> Span:
    if repairs == 0 and len(span):
        return span
    if repairs <= 1:
        start = text.rfind("\n", 0, span.start) + 1
        end = text.find("\n", span.end)
        return Span(start, len(text) if end < 0 else end)
    return Span(0, len(text))


def _recheck(session: Session, *, calm: bool) -> Outcome:
    """Denoise again what the changed context makes unlikely, with the draft as the start."""
    holes = [
        pinned(hole, draft, [])
        for hole, draft in zip(session.regions.holes, session.drafts, strict=True)
    ]
    strength = min(session.wish.strength, RECHECK_STRENGTH)
    asked, effects = _ask(
        session,
        session.regions.with_holes(holes),
        replace(session.wish, strength=strength),
        calm=calm,
    )
    return replace(asked, wish=session.wish), effects


def _fail(session: Session, event: Failed) -> Outcome:
    return _end(session, State.REFUSED, event.refusal, event.message)


def _end(
    session: Session, state: State, refusal: Refusal | None = None, message: str = ""
) -> Outcome:
    running = session.state is State.DRAFTING or not session.settled
    stop: tuple[Effect, ...] = (Stop(),) if running and not session.state.ended else ()
    ended = replace(session, state=state, refusal=refusal)
    return ended, (*stop, Tell(state, refusal, message))


def _edit(session: Session, event: Edited) -> Outcome:
    if (along := _typed_along(session, event)) is not None:
        if along.settled and not _has_more(along):
            return _committed(along)
        return along, (Show(0, 0, along.drafts),)
    holes = session.regions.holes
    now = moved(session.document, holes, session.window, event.edits)
    session = replace(session, later=blocks.carried(session.later, event.edits))
    if not now.holes:
        return _end(replace(session, document=event.document), State.REFUSED, Refusal.GONE)
    return _after_edit(session, event.document, event.edits, now)


def _after_edit(
    session: Session, document: Document, edits: Sequence[TextEdit], now: Moved
) -> Outcome:
    regions = Regions.tile(len(document), now.holes)
    earlier = tuple(_earlier_after(session.document, session.earlier, document, edits))
    here = replace(session, document=document, regions=regions, window=now.window, earlier=earlier)
    if not now.kept or now.near:
        here = replace(here, drafts=here.drafts if now.kept else (), repairs=0)
        asked, effects = _ask(here, _opened(regions), here.wish, calm=True)
        return replace(asked, stale=True, earlier=()), effects
    if now.seen and here.state is State.READY:
        return _recheck(here, calm=True)
    # The holes stand elsewhere now, and what is shown is for one version of the text.
    show = (Show(0, 0, here.drafts),) if here.drafts else ()
    return replace(here, changed=here.changed or now.seen), show


def _earlier_after(
    before: Document, earlier: Sequence[Kept], document: Document, edits: Sequence[TextEdit]
) -> Iterator[Kept]:
    """Yield the earlier drafts that still fit after edits, with their holes where they are now."""
    for kept in earlier:
        now = moved(before, kept.regions.holes, None, edits)
        if now.kept and not now.near:
            yield replace(kept, regions=Regions.tile(len(document), now.holes))


def _typed_along(session: Session, event: Edited) -> Session | None:
    """Return the session after the user typed just what the draft says there, or None."""
    if len(event.edits) != 1 or not session.drafts or session.stale:
        return None
    (edit,) = event.edits
    holes, drafts = list(session.regions.holes), list(session.drafts)
    for index, (hole, draft) in enumerate(zip(holes, drafts, strict=True)):
        here = edit.span == Span(hole.span.start, hole.span.start) and edit.text
        # A draft has LF line ends, whatever the file has.
        typed = edit.text.replace("\r\n", "\n").replace("\r", "\n")
        if here and partial.settled_start(draft).startswith(typed):
            grown = len(edit.text)
            holes = [
                replace(other, span=other.span.moved(grown)) if number >= index else other
                for number, other in enumerate(holes)
            ]
            holes[index] = replace(holes[index], taken=hole.taken + typed)
            drafts[index] = partial.without_start(draft, len(typed))
            regions = Regions.tile(len(event.document), holes)
            return replace(
                session,
                document=event.document,
                regions=regions,
                drafts=tuple(drafts),
                earlier=(),
                later=blocks.carried(session.later, event.edits),
            )
    return None


def _edit_committing(session: Session, event: Edited) -> Outcome:
    # The editor's own report of our edit can come before its answer, or after.
    assert session.commit is not None
    if event.document.text == apply(session.document.text, session.commit.edits):
        # By our own edits, from the end: what the editor reports may be one that spans them all.
        ours = sorted(session.commit.edits, key=lambda edit: edit.span, reverse=True)
        session = replace(session, later=blocks.carried(session.later, ours))
        return _made(session, event.document)
    return _end(session, State.REFUSED, Refusal.STALE)


def _close(session: Session, _: Closed) -> Outcome:
    return _end(session, State.REFUSED, Refusal.CLOSED)


def _accept(session: Session, event: Accepted) -> Outcome:
    for key, commit in session.answers:
        if key == event.key:
            return session, (Answer(commit),)
    if session.stale or not session.drafts:
        refusal = Refusal.STALE if session.stale else Refusal.INCOMPLETE
        return session, (Answer(Refused(refusal, refusal.message)),)
    part = partial.part(
        session.document,
        session.regions,
        session.drafts,
        event.scope,
        event.hole,
        settled=session.settled,
    )
    if part is None:
        return session, (Answer(Refused(Refusal.SCOPE, Refusal.SCOPE.message)),)
    breaks = event.findings.breaks_syntax and not event.anyway
    result = check(
        f"{session.id}/{session.accepts}",
        session.document,
        session.document,
        session.regions,
        part.drafts,
        part.edits,
        # A whole hole can grow until the run ends, however stable it looks; the start of one cannot.
        settled=session.settled or (not part.whole and all(draft.stable for draft in part.drafts)),
        by_request=event.by_request,
        findings=replace(event.findings, breaks_syntax=breaks),
        applied=session.applied,
    )
    if isinstance(result, Refused):
        return session, (Answer(result),)
    answers = (*session.answers, (event.key, result)) if event.key else session.answers
    committing = replace(
        session,
        state=State.COMMITTING,
        commit=result,
        part=part,
        accepts=session.accepts + 1,
        answers=answers,
    )
    return committing, (Answer(result),)


def _accept_again(session: Session, _: Accepted) -> Outcome:
    assert session.commit is not None
    return session, (Answer(session.commit),)


def _accept_late(session: Session, event: Accepted) -> Outcome:
    for key, commit in session.answers:
        if key == event.key:
            return session, (Answer(commit),)
    committed = session.state is State.COMMITTED
    refusal = Refusal.APPLIED if committed else session.refusal or Refusal.UNKNOWN
    return session, (Answer(Refused(refusal, refusal.message)),)


def _apply(session: Session, event: Applied) -> Outcome:
    # What an editor says of its edit can come before its report of the change, and there are
    # editors that say yes to an edit that they refused: only the text itself is believed.
    assert session.commit is not None
    if not event.done:
        return _end(session, State.REFUSED, Refusal.STALE)
    return (session, ()) if session.commit.edits else _made(session, session.document)


def _made(session: Session, document: Document) -> Outcome:
    """Go on after the edit was made: with what is left of the draft, or to the end."""
    assert session.commit is not None
    assert session.part is not None
    applied = session.applied | {session.commit.key}
    session = replace(session, applied=applied, document=document, commit=None)
    left = session.part.left if session.part is not None else ()
    if not left:
        ended, effects = _committed(replace(session, part=None))
        return ended, effects if session.settled else (Stop(), *effects)
    drafts = partial.after(session.part, session.drafts) if session.part else session.drafts
    state = State.READY if session.settled else State.DRAFTING
    after = replace(
        session,
        state=state,
        regions=Regions.tile(len(document), left),
        drafts=drafts,
        part=None,
        window=None,
        earlier=(),
    )
    return after, (Tell(State.COMMITTED), Tell(state), Show(0, 0, drafts))


def _committed(session: Session) -> Outcome:
    """End with all of the draft in the file; what is to follow is known before the end is told."""
    following = blocks.later(session.document, session.later)
    follow = tuple(Follow(one, following[1:], session.wish) for one in following[:1])
    return replace(session, state=State.COMMITTED), (*follow, Tell(State.COMMITTED))


def _reject(session: Session, _: Rejected) -> Outcome:
    return _end(session, State.CANCELLED)


def _replace(session: Session, _: Replaced) -> Outcome:
    return _end(session, State.CANCELLED, Refusal.REPLACED)


def _pin(session: Session, event: PinnedDown) -> Outcome:
    holes = session.regions.holes
    if not session.drafts or not 0 <= event.hole < len(holes):
        return session, (Tell(session.state, Refusal.UNKNOWN),)
    again = [
        pinned(hole, draft, [event.span] if index == event.hole else [])
        for index, (hole, draft) in enumerate(zip(holes, session.drafts, strict=True))
    ]
    return _again(session, session.regions.with_holes(again), session.wish)


def _refine(session: Session, event: Refined) -> Outcome:
    holes: Sequence[Hole] = session.regions.holes
    if session.drafts:
        holes = [pinned(hole, draft, []) for hole, draft in zip(holes, session.drafts, strict=True)]
    return _again(session, session.regions.with_holes(holes), event.wish)


def _again(session: Session, regions: Regions, wish: Wish) -> Outcome:
    if not any(hole.gaps for hole in regions.holes):
        return session, (Tell(session.state),)
    earlier = session.earlier
    if session.settled:
        earlier = (*earlier, Kept(session.regions, session.drafts, session.unsound))
    return _ask(replace(session, repairs=0, earlier=earlier), regions, wish, again=True)


def _go_back(session: Session, event: WentBack) -> Outcome:
    if not 1 <= event.by <= len(session.earlier):
        return session, (Tell(session.state, Refusal.UNKNOWN),)
    kept = session.earlier[-event.by]
    stop: tuple[Effect, ...] = () if session.settled else (Stop(),)
    back = replace(
        session,
        state=State.READY,
        regions=kept.regions,
        drafts=kept.drafts,
        settled=True,
        unsound=kept.unsound,
        earlier=session.earlier[: -event.by],
    )
    refusal = Refusal.UNSOUND if kept.unsound else None
    return back, (*stop, Show(0, 0, kept.drafts), Tell(State.READY, refusal))


def _ignore(session: Session, _: Event) -> Outcome:
    return session, ()


def _to(*states: State) -> frozenset[State]:
    return frozenset(states)


_D, _R, _C = State.DRAFTING, State.READY, State.COMMITTING

MOVES: dict[tuple[State, type[Any]], Move] = {
    (_D, Begun): Move(_to(_D), _begin),
    (_D, Sent): Move(_to(_D), _send),
    (_D, Stepped): Move(_to(_D), _step),
    (_D, Finished): Move(_to(_D, _R, State.REFUSED, State.COMMITTED), _finish),
    (_D, Failed): Move(_to(State.REFUSED), _fail),
    (_D, Edited): Move(_to(_D, State.REFUSED), _edit),
    (_D, Closed): Move(_to(State.REFUSED), _close),
    (_D, Accepted): Move(_to(_D, _C), _accept),
    (_D, Rejected): Move(_to(State.CANCELLED), _reject),
    (_D, Replaced): Move(_to(State.CANCELLED), _replace),
    (_D, PinnedDown): Move(_to(_D), _pin),
    (_D, Refined): Move(_to(_D), _refine),
    (_D, WentBack): Move(_to(_D, _R), _go_back),
    # An answer to a commit that was already taken for made, or was given up.
    (_D, Applied): Move(_to(_D), _ignore),
    (_R, Applied): Move(_to(_R), _ignore),
    (_R, Edited): Move(_to(_R, _D, State.REFUSED, State.COMMITTED), _edit),
    (_R, Closed): Move(_to(State.REFUSED), _close),
    (_R, Accepted): Move(_to(_R, _C), _accept),
    (_R, Rejected): Move(_to(State.CANCELLED), _reject),
    (_R, Replaced): Move(_to(State.CANCELLED), _replace),
    (_R, PinnedDown): Move(_to(_D, _R), _pin),
    (_R, Refined): Move(_to(_D, _R), _refine),
    (_R, WentBack): Move(_to(_R), _go_back),
    # The rest goes on being denoised while a part of it is on its way into the file.
    (_C, Sent): Move(_to(_C), _send),
    (_C, Stepped): Move(_to(_C, _D), _step),
    (_C, Finished): Move(_to(_C, _D), _finish),
    (_C, Failed): Move(_to(State.REFUSED), _fail),
    (_C, Applied): Move(_to(_C, State.COMMITTED, State.REFUSED, _R, _D), _apply),
    (_C, Edited): Move(_to(State.COMMITTED, State.REFUSED, _R, _D), _edit_committing),
    (_C, Closed): Move(_to(State.REFUSED), _close),
    (_C, Accepted): Move(_to(_C), _accept_again),
    # The edit is on its way: what the user wants now is an undo in the editor.
    (_C, Rejected): Move(_to(_C), _ignore),
    (_C, Replaced): Move(_to(State.CANCELLED), _replace),
    **{(end, Accepted): Move(_to(end), _accept_late) for end in ENDS},
    # The editor's report of our own edit, and a second word after the end.
    **{
        (end, late): Move(_to(end), _ignore)
        for end in ENDS
        for late in (Applied, Edited, Closed, Rejected, Replaced)
    },
}

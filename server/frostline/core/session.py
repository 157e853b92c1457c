"""The life of one draft: what may happen is a table, what it causes is a list.

    events    what the worker, the user and the editor did
    MOVES     (state, event) -> the states it can lead to, and the function that decides
    effects   what somebody else now has to do: ask the worker, show, tell, stop, apply

A pair that is not in the table raises and changes nothing. There is no I/O and no waiting here, and
no parser: whether a draft breaks the file is part of the event that brings it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from frostline.core.barrier import Commit, Refusal, check
from frostline.core.provisional import Draft, composed, pinned, reopened
from frostline.core.regions import Gap, Regions
from frostline.core.text import Document, Span, apply

MAX_REPAIRS = 3


class State(Enum):
    """Where a draft is; the last three are ends."""

    DRAFTING = "drafting"
    READY = "ready"
    COMMITTING = "committing"
    COMMITTED = "committed"
    REFUSED = "refused"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in _ENDS


_ENDS = frozenset({State.COMMITTED, State.REFUSED, State.CANCELLED})


class Intent(Enum):
    """What the user asked for."""

    INFILL = "infill"
    REWRITE = "rewrite"
    SKELETON = "skeleton"
    REPAIR = "repair"


@dataclass(frozen=True, slots=True)
class Wish:
    """How a draft is to be made; None leaves it to the settings.

    Attributes:
        strength: share of the old text that is noised first, 0 to 1.
        length: slots for each hole.
        steps: budget of denoise steps.
        converged: commit as soon as the draft is stable, without being asked.
    """

    intent: Intent = Intent.INFILL
    instruction: str = ""
    strength: float = 1.0
    length: int | None = None
    steps: int | None = None
    seed: int = 0
    converged: bool = False


# --- events -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begun:
    """The session starts."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """The worker took a step; one draft for each gap, in order."""

    step: int
    steps: int
    gaps: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The run ended.

    Attributes:
        gaps: one draft for each gap.
        converged: False when the step budget ran out first.
        broken: for each hole, the spans of its draft under syntax errors that it would bring.
    """

    gaps: tuple[Draft, ...]
    converged: bool
    broken: tuple[tuple[Span, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker could not go on, or is gone."""

    refusal: Refusal
    message: str = ""


@dataclass(frozen=True, slots=True)
class Edited:
    """The document has a new version."""

    document: Document


@dataclass(frozen=True, slots=True)
class Closed:
    """The document was closed."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The user, or the wish itself, wants the draft in the file."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The editor made the edit; or, with `done` False, would not."""

    done: bool = True


@dataclass(frozen=True, slots=True)
class Rejected:
    """The user does not want the draft."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A newer request for the same document took its place."""


@dataclass(frozen=True, slots=True)
class PinnedDown:
    """The user froze a span of a hole's draft; the rest is to be denoised again."""

    hole: int
    span: Span


@dataclass(frozen=True, slots=True)
class Refined:
    """The user wants the open part again, in another way."""

    wish: Wish


Event = (
    Begun
    | Stepped
    | Finished
    | Failed
    | Edited
    | Closed
    | Accepted
    | Applied
    | Rejected
    | Replaced
    | PinnedDown
    | Refined
)


# --- effects ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the worker to denoise the gaps of `regions`; a run still going is to be stopped first.

    `attempt` counts the runs of this session: a second look at the same gap has to differ.
    """

    regions: Regions
    wish: Wish
    attempt: int


@dataclass(frozen=True, slots=True)
class Show:
    """Show the drafts, one for each hole."""

    step: int
    steps: int
    drafts: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the editor which state the session is in, and why."""

    state: State
    refusal: Refusal | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """Cancel the run at the worker."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to an accept."""

    result: Commit | Refusal


Effect = Ask | Show | Tell | Stop | Answer


@dataclass(frozen=True, slots=True)
class Session:
    """One draft. Immutable: `on` gives the next one.

    Attributes:
        document: the version that the draft is made on.
        regions: what is frozen and what is open in it.
        drafts: one for each hole, empty until the first step.
        attempts: how many runs were asked for.
        repairs: how many of them were for syntax since the user last asked for something.
    """

    id: str
    document: Document
    regions: Regions
    wish: Wish = Wish()
    state: State = State.DRAFTING
    drafts: tuple[Draft, ...] = ()
    attempts: int = 0
    repairs: int = 0
    settled: bool = False
    unsound: bool = False
    refusal: Refusal | None = None
    commit: Commit | None = None
    applied: frozenset[str] = field(default_factory=frozenset)

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


def _ask(session: Session, regions: Regions, wish: Wish) -> Outcome:
    asked = replace(
        session,
        regions=regions,
        wish=wish,
        state=State.DRAFTING,
        attempts=session.attempts + 1,
        settled=False,
        unsound=False,
    )
    effects: tuple[Effect, ...] = (Ask(regions, wish, session.attempts), Tell(State.DRAFTING))
    return asked, effects


def _step(session: Session, event: Stepped) -> Outcome:
    drafts = by_hole(session.regions, event.gaps)
    return replace(session, drafts=drafts), (Show(event.step, event.steps, drafts),)


def _finish(session: Session, event: Finished) -> Outcome:
    drafts = by_hole(session.regions, event.gaps)
    session = replace(session, drafts=drafts, settled=True)
    if not any(drafts_text(drafts)) and not any(len(hole.span) for hole in session.regions.holes):
        return _end(session, State.REFUSED, Refusal.EMPTY)
    if not all(draft.complete for draft in drafts):
        # Half a character at the end: nothing of a syntax tree would make sense.
        event = replace(event, broken=tuple((Span(0, len(draft.text)),) for draft in drafts))
    if any(event.broken):
        if session.repairs < MAX_REPAIRS:
            return _repair(session, event.broken)
        complete = all(draft.complete for draft in drafts)
        reason = Refusal.UNSOUND if complete else Refusal.INCOMPLETE
        return _end(replace(session, unsound=True), State.REFUSED, reason)
    ready = replace(session, state=State.READY)
    if session.wish.converged and event.converged:
        return _commit(ready, by_request=False, tell=(Tell(State.READY),))
    return ready, (Tell(State.READY),)


def _repair(session: Session, broken: tuple[tuple[Span, ...], ...]) -> Outcome:
    """Open the slots under the errors and denoise again, wider each time.

    First what the parser points at; it often points behind the cause, so then the lines of it; at
    last the whole of each hole that has an error.
    """
    holes = []
    for hole, draft, spans in zip(session.regions.holes, session.drafts, broken, strict=True):
        wider = [_widened(draft.text, span, session.repairs) for span in spans]
        holes.append(reopened(hole, draft, wider))
    regions = session.regions.with_holes(holes)
    if not any(isinstance(part, Gap) for hole in regions.holes for part in hole.parts):
        return _end(replace(session, unsound=True), State.REFUSED, Refusal.UNSOUND)
    # What stood in the gap is what was wrong with it, so it is no start for the next try.
    wish = replace(session.wish, strength=1.0)
    return _ask(replace(session, repairs=session.repairs + 1), regions, wish)


def _widened(text: str, span: Span, repairs: int) -> Span:
    if repairs == 0 and len(span):
        return span
    if repairs <= 1:
        start = text.rfind("\n", 0, span.start) + 1
        end = text.find("\n", span.end)
        return Span(start, len(text) if end < 0 else end)
    return Span(0, len(text))


def by_hole(regions: Regions, gaps: tuple[Draft, ...]) -> tuple[Draft, ...]:
    """Return one draft for each hole, from one for each gap."""
    drafts, used = [], 0
    for hole in regions.holes:
        count = sum(isinstance(part, Gap) for part in hole.parts)
        drafts.append(composed(hole, gaps[used : used + count]))
        used += count
    if used != len(gaps):
        raise ValueError(f"{len(gaps)} drafts for {used} gaps")
    return tuple(drafts)


def drafts_text(drafts: tuple[Draft, ...]) -> tuple[str, ...]:
    """Return the text of each draft."""
    return tuple(draft.text for draft in drafts)


def _fail(session: Session, event: Failed) -> Outcome:
    return _end(session, State.REFUSED, event.refusal, event.message)


def _end(
    session: Session, state: State, refusal: Refusal | None = None, message: str = ""
) -> Outcome:
    stop: tuple[Effect, ...] = (
        () if session.settled or session.state is not State.DRAFTING else (Stop(),)
    )
    ended = replace(session, state=state, refusal=refusal)
    return ended, (*stop, Tell(state, refusal, message))


def _edit(session: Session, event: Edited) -> Outcome:
    if event.document.version == session.document.version:
        return session, ()
    return _end(session, State.REFUSED, Refusal.STALE)


def _edit_committing(session: Session, event: Edited) -> Outcome:
    # The editor's own report of our edit can come before its answer, or after.
    assert session.commit is not None
    if event.document.text == apply(session.document.text, session.commit.edits):
        return _applied(session, Applied())
    return _end(session, State.REFUSED, Refusal.STALE)


def _close(session: Session, _: Closed) -> Outcome:
    return _end(session, State.REFUSED, Refusal.CLOSED)


def _accept_early(session: Session, _: Accepted) -> Outcome:
    return session, (Answer(Refusal.INCOMPLETE),)


def _accept(session: Session, _: Accepted) -> Outcome:
    return _commit(session, by_request=True)


def _commit(session: Session, *, by_request: bool, tell: tuple[Effect, ...] = ()) -> Outcome:
    result = check(
        f"{session.id}/{session.attempts}",
        session.document,
        session.document,
        session.regions,
        session.drafts,
        settled=session.settled,
        by_request=by_request,
        breaks_syntax=session.unsound,
        applied=session.applied,
    )
    if isinstance(result, Refusal):
        return session, (*tell, Answer(result))
    return replace(session, state=State.COMMITTING, commit=result), (*tell, Answer(result))


def _accept_again(session: Session, _: Accepted) -> Outcome:
    assert session.commit is not None
    return session, (Answer(session.commit),)


def _accept_late(session: Session, _: Accepted) -> Outcome:
    if session.state is State.COMMITTED:
        return session, (Answer(Refusal.APPLIED),)
    return session, (Answer(session.refusal or Refusal.UNKNOWN),)


def _applied(session: Session, event: Applied) -> Outcome:
    assert session.commit is not None
    if not event.done:
        return _end(session, State.REFUSED, Refusal.STALE)
    applied = session.applied | {session.commit.key}
    committed = replace(session, state=State.COMMITTED, applied=applied)
    return committed, (Tell(State.COMMITTED),)


def _reject(session: Session, _: Rejected) -> Outcome:
    return _end(session, State.CANCELLED)


def _replace(session: Session, _: Replaced) -> Outcome:
    return _end(session, State.CANCELLED, Refusal.REPLACED)


def _pin(session: Session, event: PinnedDown) -> Outcome:
    holes = list(session.regions.holes)
    if not session.drafts or not 0 <= event.hole < len(holes):
        return session, (Tell(session.state, Refusal.UNKNOWN),)
    for index, (hole, draft) in enumerate(zip(holes, session.drafts, strict=True)):
        holes[index] = pinned(hole, draft, [event.span] if index == event.hole else [])
    return _again(session, session.regions.with_holes(holes), session.wish)


def _refine(session: Session, event: Refined) -> Outcome:
    holes = list(session.regions.holes)
    if session.drafts:
        holes = [pinned(hole, draft, []) for hole, draft in zip(holes, session.drafts, strict=True)]
    return _again(session, session.regions.with_holes(holes), event.wish)


def _again(session: Session, regions: Regions, wish: Wish) -> Outcome:
    gaps = any(isinstance(part, Gap) for hole in regions.holes for part in hole.parts)
    if not gaps:
        return session, (Tell(session.state),)
    return _ask(replace(session, repairs=0), regions, wish)


def _ignore(session: Session, _: Event) -> Outcome:
    return session, ()


def _to(*states: State) -> frozenset[State]:
    return frozenset(states)


_D, _R, _C = State.DRAFTING, State.READY, State.COMMITTING

MOVES: dict[tuple[State, type[Any]], Move] = {
    (_D, Begun): Move(_to(_D), _begin),
    (_D, Stepped): Move(_to(_D), _step),
    (_D, Finished): Move(_to(_D, _R, _C, State.REFUSED), _finish),
    (_D, Failed): Move(_to(State.REFUSED), _fail),
    (_D, Edited): Move(_to(_D, State.REFUSED), _edit),
    (_D, Closed): Move(_to(State.REFUSED), _close),
    (_D, Accepted): Move(_to(_D), _accept_early),
    (_D, Rejected): Move(_to(State.CANCELLED), _reject),
    (_D, Replaced): Move(_to(State.CANCELLED), _replace),
    (_D, PinnedDown): Move(_to(_D), _pin),
    (_D, Refined): Move(_to(_D), _refine),
    (_R, Edited): Move(_to(_R, State.REFUSED), _edit),
    (_R, Closed): Move(_to(State.REFUSED), _close),
    (_R, Accepted): Move(_to(_R, _C), _accept),
    (_R, Rejected): Move(_to(State.CANCELLED), _reject),
    (_R, Replaced): Move(_to(State.CANCELLED), _replace),
    (_R, PinnedDown): Move(_to(_D, _R), _pin),
    (_R, Refined): Move(_to(_D, _R), _refine),
    (_C, Applied): Move(_to(State.COMMITTED, State.REFUSED), _applied),
    (_C, Edited): Move(_to(State.COMMITTED, State.REFUSED), _edit_committing),
    (_C, Closed): Move(_to(State.REFUSED), _close),
    (_C, Accepted): Move(_to(_C), _accept_again),
    # The edit is on its way: what the user wants now is an undo in the editor.
    (_C, Rejected): Move(_to(_C), _ignore),
    (_C, Replaced): Move(_to(_C), _ignore),
    **{(end, Accepted): Move(_to(end), _accept_late) for end in _ENDS},
    # The editor's report of our own edit, and a second word after the end.
    **{
        (end, late): Move(_to(end), _ignore)
        for end in _ENDS
        for late in (Applied, Edited, Closed, Rejected, Replaced)
    },
}

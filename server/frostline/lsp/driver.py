"""Events in, effects out: joins sessions, the worker and the editor.

This page can be recited: an effect of the session is carried out here, and what comes of it is fed
back as an event. Rules about anybody's text are in `core`; nothing here decides one.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from frostline.config import Settings
from frostline.context import holes as find
from frostline.context import syntax
from frostline.context.exclude import Exclusions
from frostline.core import events, partial, provisional
from frostline.core.barrier import NO_FINDINGS, Commit, Findings, Refusal, Refused
from frostline.core.events import Wish
from frostline.core.meter import Meter
from frostline.core.partial import Scope
from frostline.core.provisional import Draft
from frostline.core.regions import Hole, Regions
from frostline.core.session import Session
from frostline.core.text import Document, Span, TextEdit
from frostline.errors import FrostlineError, WorkerLost
from frostline.lsp import checks, convert, findings, metrics, request
from frostline.lsp.documents import Documents
from frostline.wire import messages as wire
from frostline.wire.client import WorkerFace

logger = logging.getLogger(__name__)

# How long the user has to pause before a draft is made again for what was typed beside it.
CALM_S = 0.15
# How long an editor may take to report an edit that it says it made.
REPORT_S = 5.0
# How long a client may take to make an edit that it asked for.
PATIENCE_S = 60.0
# Ended sessions that can still answer a late accept.
_REMEMBERED = 64


class Editor(Protocol):
    """What the driver tells the editor."""

    def provisional(self, session: Session, show: events.Show) -> None:
        """Draw a draft."""

    def state(
        self,
        session: Session,
        tell: events.Tell,
        metrics: dict[str, Any] | None,
        following: Session | None,
    ) -> None:
        """Say how a session stands, and which one goes on with the next block."""

    async def apply(self, document: Document, edits: Sequence[TextEdit]) -> bool:
        """Have a versioned edit made; return whether it was."""

    async def approves(self, session: Session, risk: str) -> bool:
        """Ask the user whether a risky edit may be made."""


@dataclass(eq=False)
class Live:
    """A session that goes on, and what belongs to it outside of its rules.

    Attributes:
        shown: whether the editor draws it; a draft for a completion is only waited for.
        budget_s: seconds after which the draft is taken as it is.
        ready: set when the draft is ready, refused or gone.
        over: set when nothing more happens unless somebody asks.
        at_rest: set while no edit is on its way to the editor.
        sent: keys of the commits that the editor was asked to make.
        following: the session of the next block, once this one is in the file.
    """

    session: Session
    shown: bool
    meter: Meter
    budget_s: float | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    at_rest: asyncio.Event = field(default_factory=asyncio.Event)
    sent: set[str] = field(default_factory=set)
    run: asyncio.Task[None] | None = None
    figures: list[wire.Figures] = field(default_factory=list)
    answer: Commit | Refused | None = None
    message: str = ""
    following: Live | None = None

    @property
    def last(self) -> Live:
        """The session of the latest block."""
        return self if self.following is None else self.following.last


class Driver:
    """All sessions of one server."""

    def __init__(
        self,
        documents: Documents,
        worker: Callable[[], WorkerFace],
        editor: Editor,
        settings: Callable[[], Settings],
        exclusions: Callable[[], Exclusions],
    ) -> None:
        self._documents = documents
        self._worker = worker
        self._editor = editor
        self._settings = settings
        self._exclusions = exclusions
        self._live: dict[str, Live] = {}
        self._ended: dict[str, Session] = {}
        self._numbers = itertools.count(1)
        self._applying: set[asyncio.Task[None]] = set()

    # --- what the features call -----------------------------------------------------------------

    def barred(self, document: Document) -> tuple[Refusal, str] | None:
        """Return why nothing of this document may reach the worker, or None."""
        if not self._settings().enabled:
            return Refusal.OFF, Refusal.OFF.message
        reason = self._exclusions().reason(document.uri, len(document.text))
        return None if reason is None else (Refusal.EXCLUDED, reason)

    def begin(
        self,
        document: Document,
        holes: Sequence[Hole],
        wish: Wish,
        *,
        shown: bool = True,
        budget_ms: int | None = None,
        later: Sequence[Span] = (),
    ) -> Live:
        """Start a session, in the place of the document's earlier one of the same kind.

        Args:
            later: blocks that are drafted after this one, each in a session of its own.

        Raises:
            ValueError: the holes overlap.
        """
        budget_s = None if budget_ms is None else budget_ms / 1000
        live = self._new(document, holes, wish, later, shown, budget_s)
        for other in self._of(document.uri):
            if other.shown == shown:
                self.feed(other, events.Replaced())
        self._start(live)
        return live

    def _new(
        self,
        document: Document,
        holes: Sequence[Hole],
        wish: Wish,
        later: Sequence[Span],
        shown: bool,
        budget_s: float | None,
    ) -> Live:
        regions = Regions.tile(len(document), holes)
        session = Session(f"s{next(self._numbers)}", document, regions, wish, later=tuple(later))
        return Live(session, shown, Meter(time.monotonic()), budget_s)

    def _start(self, live: Live) -> None:
        self._live[live.session.id] = live
        self.feed(live, events.Begun())

    def _next(self, live: Live, follow: events.Follow) -> Live | None:
        """Return the session of the next block, not started; None where the file is barred by now."""
        document = live.session.document
        if self.barred(document) is not None:
            return None
        hole = find.selection(document, follow.block)
        return self._new(document, [hole], follow.wish, follow.later, live.shown, live.budget_s)

    async def draft(
        self, document: Document, holes: Sequence[Hole], wish: Wish, timeout_ms: int
    ) -> tuple[Commit, float] | Refused:
        """Return the commit of a draft that nobody watches and its confidence, or why there is none.

        Cancelling this cancels the run. The edit is the caller's to pass on: the session ends here.
        """
        live = self.begin(document, holes, wish, shown=False)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await live.ready.wait()
            if live.session.state is not events.State.READY:
                return refused(live.session.refusal or Refusal.REPLACED)
            confidence = min((draft.confidence for draft in live.session.drafts), default=0.0)
            result = await self.accept(live.session.id)
            return (result, confidence) if isinstance(result, Commit) else result
        except TimeoutError:
            return refused(Refusal.INCOMPLETE)
        finally:
            self._forget(live)

    async def accept(
        self,
        name: str,
        scope: Scope = Scope.ALL,
        hole: int | None = None,
        *,
        anyway: bool = False,
        key: str = "",
        by_request: bool = True,
    ) -> Commit | Refused:
        """Return the commit of a session's draft or of a part of it, or why there is none."""
        live = self._live.get(name)
        if live is None:
            return self._late(name, key)
        found = await self._find(live, scope, hole)
        if name not in self._live:
            return self._late(name, key)
        live.answer = None
        self.feed(live, events.Accepted(scope, hole, found, by_request, anyway, key))
        if live.shown and by_request and live.session.state is events.State.COMMITTING:
            # The edit is the client's to make. One that never does must not hold the session open.
            self._beside(self._made(live, PATIENCE_S))
        return live.answer or refused(Refusal.UNKNOWN)

    async def commit(self, name: str, scope: Scope = Scope.ALL) -> Refused | None:
        """Accept on the user's word and have the editor make the edit; return why not, or None.

        For clients that cannot make the edit of an accept themselves. A draft that breaks the syntax
        goes in: who asks for it by name has been told.
        """
        result = await self.accept(name, scope, anyway=True)
        if isinstance(result, Refused):
            return result
        live = self._live[name]
        await self._make(live, result)
        return None

    async def _find(self, live: Live, scope: Scope, hole: int | None) -> Findings:
        """Return what is to be known about an accept, of the text as it is when this returns."""
        while True:
            session = live.session
            part = None
            if session.drafts and session.state is not events.State.COMMITTING:
                part = partial.part(
                    session.document,
                    session.regions,
                    session.drafts,
                    scope,
                    hole,
                    settled=session.settled,
                )
            if part is None or (part.whole and not session.settled):
                return NO_FINDINGS  # the barrier refuses it, whatever might be found
            whole = scope in (Scope.ALL, Scope.HOLE)
            settings = self._settings()
            found = await asyncio.to_thread(
                findings.find,
                session.document,
                part.edits,
                settings,
                self._exclusions(),
                whole=whole,
                verified=bool(live.figures) and live.figures[-1].verified,
            )
            if whole and settings.checks and found.sound:
                words = await asyncio.to_thread(
                    checks.complaint,
                    session.document,
                    part.edits,
                    settings.checks,
                    settings.check_s,
                )
                found = replace(found, complaint=words)
            if live.session is session:
                return found

    def happened(self, name: str, event: events.Event) -> Session | None:
        """Feed what the user or the editor did; return the session, or None if there is none.

        Raises:
            UnexpectedEvent: it has no place in the session's state, as a pin after the end.
        """
        live = self._live.get(name)
        if live is None:
            ended = self._ended.get(name)
            return None if ended is None else ended.on(event)[0]
        self.feed(live, event)
        return live.session

    def session(self, name: str) -> Session | None:
        """Return a session, also one that ended lately."""
        live = self._live.get(name)
        return live.session if live else self._ended.get(name)

    def live_on(self, uri: str) -> Live | None:
        """Return the session that the editor shows in this document."""
        return next((live for live in self._of(uri) if live.shown), None)

    def document_changed(self, document: Document, edits: Sequence[TextEdit]) -> None:
        """Tell every session of the document; an answer that is only waited for is for one text."""
        for live in self._of(document.uri):
            if live.shown:
                self.feed(live, events.Edited(document, tuple(edits)))
            elif live.session.state is events.State.DRAFTING:
                self.feed(live, events.Failed(Refusal.STALE))
            else:
                self.feed(live, events.Closed())

    def document_closed(self, uri: str) -> None:
        """Tell every session of the document."""
        for live in self._of(uri):
            self.feed(live, events.Closed())

    async def close(self) -> None:
        """End all sessions."""
        for live in list(self._live.values()):
            self._forget(live)
        for task in list(self._applying):
            task.cancel()

    # --- events in, effects out -----------------------------------------------------------------

    def feed(self, live: Live, event: events.Event) -> None:
        """Give the session an event and carry out what it causes."""
        live.session, effects = live.session.on(event)
        if live.session.state is events.State.COMMITTING:
            live.at_rest.clear()
        else:
            live.at_rest.set()
        for effect in effects:
            self._carry_out(live, effect)

    def _carry_out(self, live: Live, effect: events.Effect) -> None:
        match effect:
            case events.Ask():
                self._stop(live)
                live.ready.clear()
                live.over.clear()
                live.run = asyncio.create_task(self._run(live, effect))
            case events.Stop():
                self._stop(live)
            case events.Show():
                live.meter.saw(time.monotonic(), effect.drafts)
                if live.shown:
                    self._editor.provisional(live.session, effect)
            case events.Tell():
                self._tell(live, effect)
            case events.Answer(result=result):
                live.answer = result
            case events.Follow():
                live.following = self._next(live, effect)

    def _tell(self, live: Live, tell: events.Tell) -> None:
        live.message = tell.message
        settled = live.session.settled
        if live.shown:
            numbers = metrics.told(live.session, live.meter, live.figures) if settled else None
            following = live.following.session if live.following else None
            self._editor.state(live.session, tell, numbers, following)
        if live.session.state.ended:
            # A part that was committed is told as such, and the session goes on.
            self._retire(live)
        if tell.state is not events.State.DRAFTING:
            live.ready.set()
        if (
            tell.state is events.State.READY
            and tell.refusal is None
            and live.session.wish.converged
        ):
            self._beside(self._commit_by_itself(live))
        elif tell.state is events.State.READY or live.session.state.ended:
            live.over.set()
        if live.following is not None:
            self._start(live.following)

    async def _run(self, live: Live, ask: events.Ask) -> None:
        """Have the worker denoise, and feed what it says."""
        session = live.session
        try:
            if ask.calm:
                await asyncio.sleep(CALM_S)
            worker = self._worker()
            run = f"{session.id}.{ask.attempt}"
            # The holes may have moved while the user's pause was waited for; what was asked has not.
            document = live.session.document
            infill, window = await asyncio.to_thread(
                request.infill,
                run,
                document,
                live.session.regions,
                ask.wish,
                self._settings(),
                attempt=ask.attempt,
                again=ask.again,
                max_context=worker.status.max_context,
            )
            if live.session.document is document:
                self.feed(live, events.Sent(window))
            began = time.monotonic()
            last: wire.Step | None = None
            async with aclosing(worker.infill(infill)) as steps:  # type: ignore[type-var]
                async for message in steps:
                    if live.run is not asyncio.current_task():
                        return  # told to stop while this message was on its way
                    if isinstance(message, wire.Done):
                        await self._finish(live, message)
                        return
                    last = message
                    gaps = tuple(convert.draft_in(gap) for gap in message.gaps)
                    self.feed(live, events.Stepped(message.step, message.steps, gaps))
                    if live.budget_s is not None and time.monotonic() - began > live.budget_s:
                        break
            await self._finish(live, _cut_short(run, last))
        except WorkerLost as error:
            self._fail(live, Refusal.LOST, str(error))
        except FrostlineError as error:
            self._fail(live, Refusal.FAILED, str(error))
        except Exception:
            logger.exception("session %s failed", session.id)
            self._fail(live, Refusal.FAILED)

    def _fail(self, live: Live, refusal: Refusal, message: str = "") -> None:
        if live.run is asyncio.current_task():
            self.feed(live, events.Failed(refusal, message))

    async def _finish(self, live: Live, done: wire.Done) -> None:
        live.figures.append(done.figures)
        if done.outcome == "cancelled":
            # Somebody else's doing: the worker was told to stop, or is going away.
            self.feed(live, events.Failed(Refusal.LOST))
            return
        gaps = tuple(convert.final_in(gap) for gap in done.gaps)
        drafts = provisional.by_hole(live.session.regions, gaps)
        # A parse of a large file takes a while, and other requests should not.
        broken = await asyncio.to_thread(_broken, live.session, drafts)
        if live.run is asyncio.current_task():
            self.feed(live, events.Finished(gaps, done.outcome == "converged", broken))

    async def _commit_by_itself(self, live: Live) -> None:
        """Commit a draft that was to go in by itself; ask the user first where it is risky."""
        try:
            await self._approved_commit(live)
        finally:
            live.over.set()

    async def _approved_commit(self, live: Live) -> None:
        result = await self.accept(live.session.id, by_request=False)
        if isinstance(result, Refused) and result.refusal is Refusal.RISKY:
            if not await self._editor.approves(live.session, result.message):
                return
            result = await self.accept(live.session.id)
        if isinstance(result, Commit):
            await self._make(live, result)

    async def _make(self, live: Live, commit: Commit) -> None:
        """Have the editor make the edit of a commit, once, and wait until it is made or is not."""
        if commit.key in live.sent:
            await self._made(live, PATIENCE_S)
            return
        live.sent.add(commit.key)
        done = await self._editor.apply(live.session.document, commit.edits)
        if live.session.state is events.State.COMMITTING:
            self.feed(live, events.Applied(done))
        await self._made(live, REPORT_S)

    async def _made(self, live: Live, patience_s: float) -> None:
        """Wait for the editor's report of the change, which can come after its answer, or never."""
        commit = live.session.commit
        try:
            async with asyncio.timeout(patience_s):
                await live.at_rest.wait()
        except TimeoutError:
            if live.session.state is events.State.COMMITTING and live.session.commit is commit:
                self.feed(live, events.Applied(done=False))

    # --- book-keeping ---------------------------------------------------------------------------

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._applying.add(task)
        task.add_done_callback(self._applying.discard)

    def _of(self, uri: str) -> list[Live]:
        return [live for live in self._live.values() if live.session.document.uri == uri]

    def _stop(self, live: Live) -> None:
        run, live.run = live.run, None
        # A run that ends its own session is not cancelled from inside: it is at its end anyway.
        if run is not None and run is not asyncio.current_task():
            run.cancel()

    def _retire(self, live: Live) -> None:
        self._live.pop(live.session.id, None)
        self._ended[live.session.id] = live.session
        while len(self._ended) > _REMEMBERED:
            del self._ended[next(iter(self._ended))]

    def _forget(self, live: Live) -> None:
        self._stop(live)
        self._live.pop(live.session.id, None)

    def _late(self, name: str, key: str) -> Commit | Refused:
        session = self._ended.get(name)
        if session is None:
            return refused(Refusal.UNKNOWN)
        _, effects = session.on(events.Accepted(key=key))
        return next(one.result for one in effects if isinstance(one, events.Answer))


def refused(refusal: Refusal, message: str = "") -> Refused:
    """Return a refusal with its own sentence, or another."""
    return Refused(refusal, message or refusal.message)


def _broken(session: Session, drafts: tuple[Draft, ...]) -> tuple[tuple[Any, ...], ...]:
    document, regions = session.document, session.regions
    edits = provisional.edits_for(document, regions, drafts)
    errors = syntax.breaks(document.text, edits, document.language)
    return provisional.errors_by_hole(document, regions, drafts, errors)


def _cut_short(run: str, last: wire.Step | None) -> wire.Done:
    """Return the end of a run whose time was up: its guesses as they stand."""
    gaps = last.gaps if last else ()
    texts = tuple(
        wire.GapText(
            gap.id,
            "".join(piece.text for piece in gap.pieces),
            True,
            min((piece.confidence for piece in gap.pieces), default=0.0),
        )
        for gap in gaps
    )
    step = last.step if last else 0
    return wire.Done(run, "budget", texts, wire.Figures(steps=step, forwards=step))

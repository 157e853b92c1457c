"""A person, an editor, a server's core and a worker that do whatever they like, in any order.

The editor's text is the truth. The worker answers late, twice, out of order, or dies. Whatever they do:
no frozen character changes but by the user's own hand, no commit lands on a version that it was not
checked against, each accept is one edit, and no session stays open for ever.

Messages on the way are lost, doubled and overtaken: the worker's steps, the editor's answers, the reports of
its changes are rules of their own.

The default run is short; the long one is a target of its own, and says how much it did:

    pytest tests/core/test_machine.py --hypothesis-profile=long -s
"""

from __future__ import annotations

import itertools
import re

from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from frostline.core import events, partial, provisional
from frostline.core.barrier import NO_FINDINGS, Commit, Refusal, Refused, keeps_frozen
from frostline.core.events import State, Wish
from frostline.core.partial import Scope
from frostline.core.provisional import Draft, Piece, PieceState
from frostline.core.regions import Gap, Hole, Regions
from frostline.core.session import Session, UnexpectedEvent
from frostline.core.text import Document, Span, TextEdit, apply

TEXT = "alpha = 1\nbeta = old + 2\r\n\f\ngamma = 3  # 😀\n"
WORDS = st.sampled_from(["", "x", "(", "y = 1\n", "é", "😀", "\n", "one two", "old", "new + "])
# What ends a session is tried less often than what it lives for, or hardly a commit would be seen.
SELDOM = st.sampled_from([True, True, True, False])
STATES = st.sampled_from(list(PieceState))


def draft(texts: list[tuple[str, PieceState]]) -> Draft:
    return Draft(tuple(Piece(text, state, 0.5) for text, state in texts if text), True, 0.5)


# What all runs of this process did: rules, and commits that were made.
COUNTED = {"rules": 0, "commits": 0, "blocks begun": 0}
LONG = 100_000


class Typing(RuleBasedStateMachine):
    """One document, one session at a time, and one run of the worker at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.document = Document.of("file:///a.py", 1, "python", TEXT)
        self.session: Session | None = None
        self.gaps = 0
        self.asked = 0
        COUNTED["rules"] -= 1  # the invariants are asked once before the first rule
        self.commit: Commit | None = None
        self.commits = 0
        self.undo: list[str] = []
        self.names = 0
        self.following: events.Follow | None = None

    # --- carrying out ---------------------------------------------------------------------------

    def feed(self, event: events.Event) -> None:
        assert self.session is not None
        before = self.session
        self.session, effects = before.on(event)
        for effect in effects:
            match effect:
                case events.Ask(regions=regions):
                    self.gaps = sum(hole.gaps for hole in regions.holes)
                    self.asked += 1
                    assert self.gaps, "the worker is never asked for nothing"
                    for hole in regions.holes:
                        left = self.session.document.text[: hole.span.start]
                        assert left.endswith(hole.required), "it goes on with what stands there"
                        assert not hole.required or isinstance(hole.parts[0], Gap)
                case events.Stop():
                    self.gaps = 0
                case events.Follow():
                    self.follow(effect)
                case events.Show(drafts=drafts):
                    assert len(drafts) == len(self.session.regions.holes)
                case events.Answer(result=Commit() as commit):
                    if (
                        before.state is not State.COMMITTING
                        and self.session.state is State.COMMITTING
                    ):
                        self.check(before, commit)
                    self.commit = commit
        if self.session.state.ended:
            self.gaps = 0

    def follow(self, follow: events.Follow) -> None:
        """The blocks that follow are stretches of the present text, in order and apart."""
        assert self.session is not None
        assert self.session.state is State.COMMITTED
        reached = 0
        for block in (follow.block, *follow.later):
            assert reached <= block.start < block.end <= len(self.session.document)
            reached = block.end
        assert self.session.document.slice(follow.block).strip()
        self.following = follow

    def check(self, session: Session, commit: Commit) -> None:
        """The promises, each asked of the edit itself."""
        assert commit.version == self.document.version
        assert session.document.text == self.document.text
        assert keeps_frozen(self.document.text, session.regions, commit.edits)
        for edit in commit.edits:
            assert any(
                hole.span.start <= edit.span.start and edit.span.end <= hole.span.end
                for hole in session.regions.holes
            )

    def moved(self, text: str, edits: tuple[TextEdit, ...]) -> None:
        version = self.document.version + 1
        self.document = Document.of(self.document.uri, version, "python", text)
        if self.session is not None:
            self.feed(events.Edited(self.document, edits))

    # --- the user -------------------------------------------------------------------------------

    @rule(data=st.data(), converged=st.booleans())
    def begin(self, data: st.DataObject, converged: bool) -> None:
        cuts = data.draw(
            st.lists(st.integers(0, len(self.document)), min_size=2, max_size=4, unique=True)
        )
        cuts = sorted(cuts)[: len(cuts) // 2 * 2]
        holes = [
            Hole(Span(a, b), multiline=True) for a, b in zip(cuts[::2], cuts[1::2], strict=True)
        ]
        if data.draw(st.booleans()):
            at = cuts[0]
            word = re.search(r"\w*\Z", self.document.text[:at])
            assert word is not None
            holes = [Hole(Span(at, at), multiline=True, required=word.group())]
        if self.session is not None and not self.session.state.ended:
            if data.draw(SELDOM):
                return
            self.feed(events.Replaced())
            assert self.session.state.ended, "a newer request always takes the place of the older"
        ends = [holes[-1].span.end, *data.draw(st.lists(st.integers(0, 60), max_size=2))]
        ends = sorted({min(max(end, ends[0]), len(self.document)) for end in ends})
        later = tuple(Span(a, b) for a, b in itertools.pairwise(ends))
        self.start(holes, Wish(converged=converged), later)

    def start(self, holes: list[Hole], wish: Wish, later: tuple[Span, ...]) -> None:
        self.names += 1
        self.following, self.commit = None, None
        regions = Regions.tile(len(self.document), holes)
        self.session = Session(f"s{self.names}", self.document, regions, wish, later=later)
        self.feed(events.Begun())

    @precondition(lambda self: self.following)
    @rule()
    def begin_the_next_block(self) -> None:
        """As the server does at once; only where the text is still the one that it was said of."""
        assert self.following is not None
        assert self.session is not None
        follow, self.following = self.following, None
        if self.session.state is State.COMMITTED and self.session.document is self.document:
            COUNTED["blocks begun"] += 1
            self.start([Hole(follow.block, multiline=True)], follow.wish, follow.later)

    @rule(data=st.data(), text=WORDS)
    def type(self, data: st.DataObject, text: str) -> None:
        length = len(self.document)
        start = data.draw(st.integers(0, length))
        end = min(length, start + data.draw(st.sampled_from([0, 0, 0, 1, 3, 9])))
        edit = TextEdit(Span(start, end), text)
        self.undo.append(self.document.text)
        self.moved(apply(self.document.text, [edit]), (edit,))

    @precondition(
        lambda self: self.session and self.session.drafts and not self.session.state.ended
    )
    @rule(length=st.integers(1, 3))
    def type_along(self, length: int) -> None:
        assert self.session is not None
        hole, first = self.session.regions.holes[0], self.session.drafts[0]
        text = first.text[:length]
        edit = TextEdit(Span(hole.span.start, hole.span.start), text)
        self.undo.append(self.document.text)
        self.moved(apply(self.document.text, [edit]), (edit,))

    @precondition(lambda self: self.undo)
    @rule()
    def take_back(self) -> None:
        from frostline.core.text import difference

        before, text = self.document.text, self.undo.pop()
        self.moved(text, (difference(before, text),))

    @precondition(lambda self: self.session is not None)
    @rule(
        scope=st.sampled_from(list(Scope)),
        hole=st.sampled_from([None, 0, 1, 7]),
        key=st.sampled_from(["", "k"]),
    )
    def accept(self, scope: Scope, hole: int | None, key: str) -> None:
        self.accept_of(scope, hole, key)

    def accept_of(self, scope: Scope, hole: int | None = None, key: str = "") -> None:
        assert self.session is not None
        if self.session.state is State.COMMITTING:
            before = self.commit
            self.feed(events.Accepted(scope, hole, NO_FINDINGS, key=key))
            assert self.commit == before, "asked twice, answered the same"
            return
        self.commit = None
        self.feed(events.Accepted(scope, hole, NO_FINDINGS, key=key))
        if self.session.state is not State.COMMITTING:
            self.commit = None  # an old answer by its key, or a refusal: there is nothing to make

    @precondition(lambda self: self.commit is not None)
    @rule(answers=st.sampled_from(["first", "last", "never"]))
    def make_the_edit(self, answers: str) -> None:
        self.make(answers)

    def make(self, answers: str) -> None:
        assert self.commit is not None
        commit, self.commit = self.commit, None
        if commit.version != self.document.version:
            self.say(events.Applied(done=False))
            return
        if answers == "first":
            self.say(events.Applied())
        self.commits += 1
        COUNTED["commits"] += 1
        self.undo.append(self.document.text)
        edits = tuple(sorted(commit.edits, key=lambda edit: edit.span, reverse=True))
        self.moved(apply(self.document.text, commit.edits), edits)
        if answers == "last":
            self.say(events.Applied())

    @precondition(lambda self: self.commit is not None)
    @rule()
    def refuse_the_edit(self) -> None:
        self.commit = None
        self.say(events.Applied(done=False))

    @precondition(lambda self: self.session and not self.session.state.ended)
    @rule(data=st.data())
    def pin_or_ask_again(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, 8))
        event = data.draw(
            st.sampled_from(
                [
                    events.PinnedDown(data.draw(st.integers(0, 2)), Span(start, start + 3)),
                    events.Refined(Wish(seed=1)),
                    events.WentBack(1),
                ]
            )
        )
        self.say(event)

    @precondition(lambda self: self.session is not None)
    @rule(event=st.sampled_from([events.Rejected(), events.Closed()]), not_yet=SELDOM)
    def leave(self, event: events.Event, not_yet: bool) -> None:
        if not not_yet:
            self.say(event)

    def say(self, event: events.Event) -> None:
        """Say something that may have no place any more; then nothing may change."""
        before = self.session
        assert before is not None
        try:
            self.feed(event)
        except UnexpectedEvent:
            assert self.session is before

    # --- the worker -----------------------------------------------------------------------------

    @precondition(lambda self: self.gaps)
    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        self.feed(events.Stepped(1, 9, self.drafts(data, STATES)))

    @precondition(lambda self: self.gaps)
    @rule(data=st.data(), converged=st.booleans(), broken=st.booleans())
    def finish(self, data: st.DataObject, converged: bool, broken: bool) -> None:
        assert self.session is not None
        drafts = self.drafts(data, st.just(PieceState.STABLE))
        self.gaps = 0
        holes = provisional.by_hole(self.session.regions, drafts)
        spans = tuple((Span(0, len(one.text)),) if broken else () for one in holes)
        self.feed(events.Finished(drafts, converged, spans))

    @precondition(lambda self: self.gaps)
    @rule(text=st.sampled_from(["new", "two\nlines\n", "😀"]))
    def run_well(self, text: str) -> None:
        gaps = tuple(draft([(text, PieceState.STABLE)]) for _ in range(self.gaps))
        self.feed(events.Stepped(1, 1, gaps))
        if len(gaps) == self.gaps:  # else the step had it asked again
            self.gaps = 0
            self.feed(events.Finished(gaps, True, tuple(() for _ in self.session.regions.holes)))

    @precondition(lambda self: self.session and self.session.state is State.READY)
    @rule(scope=st.sampled_from(list(Scope)))
    def accept_and_make(self, scope: Scope) -> None:
        self.accept_of(scope)
        if self.commit is not None:
            self.make("last")

    @precondition(lambda self: self.gaps)
    @rule(not_yet=SELDOM)
    def die(self, not_yet: bool) -> None:
        if not_yet:
            return
        self.feed(events.Failed(Refusal.LOST))
        assert self.session is not None
        assert self.session.state is State.REFUSED

    def drafts(
        self, data: st.DataObject, states: st.SearchStrategy[PieceState]
    ) -> tuple[Draft, ...]:
        pieces = st.lists(st.tuples(WORDS, states), max_size=3)
        return tuple(draft(data.draw(pieces)) for _ in range(self.gaps))

    @precondition(lambda self: self.session is not None)
    @rule(data=st.data(), answers=st.booleans())
    def a_message_that_is_late(self, data: st.DataObject, answers: bool) -> None:
        """A step or an end of a run that nobody waits for, or a second answer of the editor."""
        event = events.Applied() if answers else events.Stepped(1, 9, self.drafts(data, STATES))
        if self.gaps or (self.session and self.session.state is State.COMMITTING):
            return  # not late
        self.say(event)

    # --- always ---------------------------------------------------------------------------------

    @invariant()
    def each_rule_is_counted(self) -> None:
        COUNTED["rules"] += 1

    @invariant()
    def the_session_has_the_editors_text(self) -> None:
        if self.session is not None and not self.session.state.ended:
            assert self.session.document.text == self.document.text
            assert self.session.regions.length == len(self.document)
            for kept in self.session.earlier:
                assert kept.regions.length == len(self.document)

    @invariant()
    def a_session_that_goes_on_has_somebody_to_wait_for(self) -> None:
        """Drafting waits for the worker, committing for the editor, ready for the user."""
        if self.session is None:
            return
        note(f"{self.session.state} gaps={self.gaps}")
        if self.session.state is State.DRAFTING:
            assert self.gaps or not self.session.settled
            assert self.gaps, "drafting, and nobody was asked"
        if self.session.state is State.COMMITTING:
            assert self.session.commit is not None

    @invariant()
    def what_is_on_offer_fits(self) -> None:
        session = self.session
        if session is None or session.state is not State.READY:
            return
        assert len(session.drafts) == len(session.regions.holes)
        for scope in Scope:
            part = partial.part(
                session.document, session.regions, session.drafts, scope, None, settled=True
            )
            if part is not None:
                assert keeps_frozen(session.document.text, session.regions, part.edits)

    def teardown(self) -> None:
        """However it went, a newer request or a closed file ends it."""
        if self.session is not None and not self.session.state.ended:
            self.feed(events.Closed())
            assert self.session.state.ended
            _, effects = self.session.on(events.Accepted())
            assert isinstance(effects[0], events.Answer)
            assert isinstance(effects[0].result, Refused)


TestTyping = Typing.TestCase


def test_how_much_was_tried() -> None:
    """Reports the figures; the long run is only one when it was more than 100,000 rules."""
    print("\n" + ", ".join(f"{number:,} {what}" for what, number in COUNTED.items()))
    assert COUNTED["commits"] > 0
    if settings.default and settings.default.max_examples >= LONG // 50:
        assert COUNTED["rules"] > LONG

"""The state table: every pair is listed, or raises and changes nothing."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from frostline.core import events
from frostline.core.barrier import Commit, Findings, Refusal, Refused
from frostline.core.diagram import drawn, into
from frostline.core.events import State, Wish
from frostline.core.partial import Scope
from frostline.core.provisional import Draft, Piece, PieceState
from frostline.core.regions import Gap, Hole, Pinned, Regions
from frostline.core.session import MAX_REPAIRS, MOVES, RECHECK_STRENGTH, Session, UnexpectedEvent
from frostline.core.text import Document, Span, TextEdit, apply

TEXT = "total = 0\n"
DOCUMENT = Document.of("file:///a.py", 1, "python", TEXT)
REGIONS = Regions.tile(len(TEXT), [Hole(Span(8, 9))])
TYPED = TextEdit(Span(8, 8), "1")
NEWER = Document.of("file:///a.py", 2, "python", "total = 10\n")


def draft(text: str, state: PieceState = PieceState.STABLE) -> Draft:
    return Draft((Piece(text, state, 0.9),) if text else (), True, 0.9)


EVENTS: dict[type, events.Event] = {
    events.Begun: events.Begun(),
    events.Sent: events.Sent(Span(0, 10)),
    events.Stepped: events.Stepped(1, 3, (draft("░", PieceState.OPEN),)),
    events.Finished: events.Finished((draft("price"),), True),
    events.Failed: events.Failed(Refusal.LOST),
    events.Edited: events.Edited(NEWER, (TYPED,)),
    events.Closed: events.Closed(),
    events.Accepted: events.Accepted(),
    events.Applied: events.Applied(),
    events.Rejected: events.Rejected(),
    events.Replaced: events.Replaced(),
    events.PinnedDown: events.PinnedDown(0, Span(0, 2)),
    events.Refined: events.Refined(Wish(seed=1)),
    events.WentBack: events.WentBack(),
}


def started(wish: Wish | None = None) -> Session:
    session, _ = Session("s1", DOCUMENT, REGIONS, wish or Wish()).on(events.Begun())
    return session


def made(session: Session) -> Session:
    """Return the session after the editor made its edit and reported the change."""
    assert session.commit is not None
    before = session.document
    text = apply(before.text, session.commit.edits)
    after = Document.of(before.uri, before.version + 1, before.language, text)
    session, _ = session.on(events.Edited(after, session.commit.edits[::-1]))
    return session


def in_state(state: State) -> Session:
    paths: dict[State, list[type | None]] = {
        State.DRAFTING: [],
        State.READY: [events.Finished],
        State.COMMITTING: [events.Finished, events.Accepted],
        State.COMMITTED: [events.Finished, events.Accepted, None],
        State.REFUSED: [events.Failed],
        State.CANCELLED: [events.Rejected],
    }
    session = started()
    for kind in paths[state]:
        session = made(session) if kind is None else session.on(EVENTS[kind])[0]
    assert session.state is state
    return session


def test_the_events_here_are_all_there_are() -> None:
    assert set(EVENTS) == set(get_args(events.Event))


@pytest.mark.parametrize(
    ("state", "kind"),
    list(itertools.product(State, EVENTS)),
    ids=lambda one: getattr(one, "__name__", one),
)
def test_every_pair_is_listed_or_raises(state: State, kind: type) -> None:
    session = in_state(state)
    if (state, kind) in MOVES:
        after, _ = session.on(EVENTS[kind])
        assert after.state in MOVES[state, kind].to
        assert after.document is session.document or kind in (events.Edited, events.Applied)
    else:
        with pytest.raises(UnexpectedEvent, match=state.value):
            session.on(EVENTS[kind])
        assert without_document(session) == without_document(in_state(state))


def without_document(session: Session) -> Session:
    return replace(session, document=DOCUMENT)


def test_no_move_leads_out_of_an_end() -> None:
    for (state, _), move in MOVES.items():
        if state.ended:
            assert move.to == {state}


def test_every_state_that_is_no_end_can_be_left() -> None:
    for state in State:
        if not state.ended:
            assert any(
                other.ended for (one, _), move in MOVES.items() if one is state for other in move.to
            )


def effects_of(session: Session, event: events.Event) -> tuple[Session, list[events.Effect]]:
    after, effects = session.on(event)
    return after, list(effects)


def test_a_begin_asks_the_worker() -> None:
    _, effects = Session("s1", DOCUMENT, REGIONS).on(events.Begun())
    assert effects == (events.Ask(REGIONS, Wish(), 0), events.Tell(State.DRAFTING))


def test_an_accept_gives_one_commit_and_then_the_same_again() -> None:
    ready = in_state(State.READY)
    committing, first = effects_of(ready, events.Accepted())
    _, again = effects_of(committing, events.Accepted())
    assert first == again
    (answer,) = first
    assert isinstance(answer, events.Answer)
    assert isinstance(answer.result, Commit)
    assert answer.result.version == 1
    assert [edit.text for edit in answer.result.edits] == ["price"]


def test_after_the_commit_an_accept_is_told_that_it_is_done() -> None:
    _, effects = effects_of(in_state(State.COMMITTED), events.Accepted())
    assert effects == [events.Answer(Refused(Refusal.APPLIED, Refusal.APPLIED.message))]


def test_the_editors_own_report_of_the_edit_is_the_commit() -> None:
    committing = in_state(State.COMMITTING)
    after = Document.of("file:///a.py", 2, "python", "total = price\n")
    session, effects = effects_of(
        committing, events.Edited(after, (TextEdit(Span(8, 9), "price"),))
    )
    assert session.state is State.COMMITTED
    assert effects == [events.Tell(State.COMMITTED)]


def test_another_text_while_the_edit_is_on_its_way_is_stale() -> None:
    session, effects = effects_of(in_state(State.COMMITTING), events.Edited(NEWER, (TYPED,)))
    assert session.refusal is Refusal.STALE
    assert effects == [events.Tell(State.REFUSED, Refusal.STALE)]


def edited(session: Session, edit: TextEdit) -> tuple[Session, list[events.Effect]]:
    before = session.document
    after = Document.of(before.uri, before.version + 1, before.language, apply(before.text, [edit]))
    return effects_of(session, events.Edited(after, (edit,)))


TWO = "a = 1\n\n\n\ntotal = 0\n\n\n\nb = 2\n"


def word_hole(text: str, at: int, required: str) -> Session:
    document = Document.of("file:///a.py", 1, "python", text)
    hole = Hole(Span(at, at), multiline=True, required=required)
    return Session("s1", document, Regions.tile(len(text), [hole]))


def typed(session: Session, text: str) -> events.Edited:
    """Return the event of typing at the first hole."""
    at = session.regions.holes[0].span.start
    edit = TextEdit(Span(at, at), text)
    return events.Edited(session.document.replaced(session.document.version + 1, [edit]), (edit,))


@pytest.mark.parametrize(("text", "word"), [("c", "pric"), (" + t", "t"), (" ", "")])
def test_a_word_that_is_typed_on_is_what_the_next_run_goes_on_with(text: str, word: str) -> None:
    session, _ = word_hole("x = pri\n", 7, "pri").on(events.Begun())
    session, effects = session.on(typed(session, text))
    (ask,) = [one for one in effects if isinstance(one, events.Ask)]
    assert [hole.required for hole in ask.regions.holes] == [word]


def test_a_pin_at_the_start_stands_between_the_word_and_what_is_open() -> None:
    session, _ = word_hole("x = pri\n", 7, "pri").on(events.Begun())
    session, _ = session.on(events.Finished((draft("ce * 2"),), True))
    session, effects = session.on(events.PinnedDown(0, Span(0, 4)))
    (ask,) = [one for one in effects if isinstance(one, events.Ask)]
    (hole,) = ask.regions.holes
    assert hole.parts == (Pinned("ce *"), Gap(old=" 2"))
    assert hole.required == "", "else the word would be cut off the frozen text, and be nowhere"


def test_a_draft_that_was_typed_to_its_end_is_in_the_file() -> None:
    session, _ = word_hole("x = \n", 4, "").on(events.Begun())
    session, _ = session.on(events.Finished((draft("12"),), True))
    session, _ = session.on(typed(session, "1"))
    assert session.state is State.READY
    session, effects = session.on(typed(session, "2"))
    assert session.state is State.COMMITTED
    assert effects == (events.Tell(State.COMMITTED),)


def test_a_line_end_that_is_typed_along_is_one_of_the_file() -> None:
    session, _ = word_hole("x = \r\ny\r\n", 4, "").on(events.Begun())
    session, _ = session.on(events.Finished((draft("(\n1)"),), True))
    session, _ = session.on(typed(session, "(\r\n"))
    assert session.state is State.READY
    assert [draft.text for draft in session.drafts] == ["1)"]


def test_going_back_to_a_draft_that_breaks_the_syntax_says_so_again() -> None:
    session, _ = word_hole("x = \n", 4, "").on(events.Begun())
    for _ in range(MAX_REPAIRS + 1):
        session, _ = session.on(events.Finished((draft("(("),), True, ((Span(0, 2),),)))
    assert session.unsound
    session, _ = session.on(events.Refined(session.wish))
    session, _ = session.on(events.Finished((draft("1"),), True, ((),)))
    assert not session.unsound
    session, effects = session.on(events.WentBack())
    assert session.drafts[0].text == "(("
    assert effects[-1] == events.Tell(State.READY, Refusal.UNSOUND)


def two_lines(*after: events.Event) -> Session:
    """Return a session on the 0 of `TWO`, after some events."""
    document = Document.of("file:///a.py", 1, "python", TWO)
    at = TWO.index("0")
    session = Session("s1", document, Regions.tile(len(TWO), [Hole(Span(at, at + 1))]))
    for event in (events.Begun(), *after):
        session, _ = session.on(event)
    return session


def test_an_edit_elsewhere_moves_the_hole_and_the_draft_stays() -> None:
    ready = two_lines(EVENTS[events.Finished])
    session, effects = edited(ready, TextEdit(Span(0, 1), "longer"))
    assert effects == [events.Show(0, 0, ready.drafts)]
    assert session.state is State.READY
    assert session.regions.holes[0].span == Span(TWO.index("0") + 5, TWO.index("0") + 6)
    _, (answer,) = effects_of(session, events.Accepted())
    assert isinstance(answer, events.Answer)
    assert isinstance(answer.result, Commit)
    assert answer.result.version == 2
    after = apply(session.document.text, answer.result.edits)
    assert after == "longer" + TWO[1:].replace("0", "price")


def test_an_edit_that_the_model_saw_has_a_finished_draft_looked_at_again() -> None:
    ready = two_lines(events.Sent(Span(0, len(TWO))), EVENTS[events.Finished])
    session, effects = edited(ready, TextEdit(Span(0, 1), "longer"))
    (ask, *_) = effects
    assert isinstance(ask, events.Ask)
    assert ask.calm
    assert ask.wish.strength == RECHECK_STRENGTH
    assert ask.regions.holes[0].parts == (Gap(old="price"),)
    assert session.wish.strength == 1.0
    assert [draft.text for draft in session.drafts] == ["price"]


def test_an_edit_that_the_model_saw_waits_for_the_end_of_the_run() -> None:
    drafting = two_lines(events.Sent(Span(0, len(TWO))))
    session, effects = edited(drafting, TextEdit(Span(0, 1), "longer"))
    assert (effects, session.changed) == ([], True)
    session, (ask, *_) = effects_of(session, EVENTS[events.Finished])
    assert isinstance(ask, events.Ask)
    assert ask.regions.holes[0].parts == (Gap(old="price"),)


def test_text_typed_inside_a_hole_is_frozen_and_splits_it() -> None:
    text = "total = old_text\n"
    document = Document.of("file:///a.py", 1, "python", text)
    session = Session("s1", document, Regions.tile(len(text), [Hole(Span(8, 16))]))
    session, _ = session.on(events.Begun())
    session, effects = edited(session, TextEdit(Span(12, 12), "NEW"))
    assert [session.document.slice(hole.span) for hole in session.regions.holes] == ["old_", "text"]
    assert isinstance(effects[0], events.Ask)
    _, (answer,) = effects_of(session, events.Accepted())
    assert answer == events.Answer(Refused(Refusal.STALE, Refusal.STALE.message))


@pytest.mark.parametrize(
    ("deleted", "left"),
    [(Span(4, 10), ["d_text"]), (Span(12, 17), ["old_"]), (Span(10, 12), ["oltext"])],
)
def test_deleting_into_a_hole_shrinks_it(deleted: Span, left: list[str]) -> None:
    text = "total = old_text\n"
    document = Document.of("file:///a.py", 1, "python", text)
    session = Session("s1", document, Regions.tile(len(text), [Hole(Span(8, 16))]))
    session, _ = session.on(events.Begun())
    session, _ = edited(session, TextEdit(deleted, ""))
    assert [session.document.slice(hole.span) for hole in session.regions.holes] == left


def test_deleting_a_whole_hole_ends_the_session() -> None:
    session, effects = edited(started(), TextEdit(Span(6, 10), ""))
    assert session.refusal is Refusal.GONE
    assert effects == [events.Stop(), events.Tell(State.REFUSED, Refusal.GONE)]


def test_typing_what_the_draft_says_takes_it_from_the_draft() -> None:
    session, effects = edited(in_state(State.READY), TextEdit(Span(8, 8), "pr"))
    assert (effects, session.state) == ([events.Show(0, 0, session.drafts)], State.READY)
    assert session.drafts[0].text == "ice"
    _, (answer,) = effects_of(session, events.Accepted())
    assert isinstance(answer, events.Answer)
    assert isinstance(answer.result, Commit)
    assert apply(session.document.text, answer.result.edits) == "total = price\n"


@pytest.mark.parametrize(
    ("scope", "first", "left"),
    [
        (Scope.WORD, "total = one0\n", " + two\nthree"),
        (Scope.LINE, "total = one + two\n0\n", "three"),
        (Scope.ALL, "total = one + two\nthree\n", None),
        (Scope.HOLE, "total = one + two\nthree\n", None),
        (Scope.STABLE, "total = one + two\nthree\n", None),
    ],
)
def test_a_draft_is_accepted_in_parts(scope: Scope, first: str, left: str | None) -> None:
    done = events.Finished((draft("one + two\nthree"),), True)
    session, _ = effects_of(started(), done)
    session, (answer,) = effects_of(session, events.Accepted(scope))
    assert isinstance(answer, events.Answer)
    assert isinstance(answer.result, Commit)
    edit = answer.result.edits[0]
    session = made(session)
    assert session.document.text == first
    assert len(answer.result.edits) == 1
    if left is None:
        assert session.state is State.COMMITTED
        return
    assert session.state is State.READY
    assert [one.text for one in session.drafts] == [left]
    assert edit.text + left == "one + two\nthree"
    session, (answer,) = effects_of(session, events.Accepted())
    assert isinstance(answer, events.Answer)
    assert isinstance(answer.result, Commit)
    whole = apply(session.document.text, answer.result.edits)
    assert whole == "total = one + two\nthree\n"


def test_what_is_stable_is_accepted_while_the_rest_goes_on() -> None:
    shown = Draft(
        (
            Piece("one", PieceState.STABLE),
            Piece(" + ", PieceState.DRAFT),
            Piece("░", PieceState.OPEN),
        )
    )
    session, _ = effects_of(started(), events.Stepped(1, 3, (shown,)))
    session, (answer,) = effects_of(session, events.Accepted(Scope.STABLE))
    assert isinstance(answer, events.Answer)
    assert isinstance(answer.result, Commit)
    assert [edit.text for edit in answer.result.edits] == ["one"]
    # A step that comes while the edit is on its way is kept, and shown with the next.
    session, effects = effects_of(session, events.Stepped(2, 3, (draft("one + t"),)))
    assert effects == []
    session = made(session)
    assert session.state is State.DRAFTING
    session, _ = effects_of(session, events.Finished((draft("one + two"),), True))
    assert session.state is State.READY
    assert session.drafts[0].text == " + two"
    _, (answer,) = effects_of(session, events.Accepted())
    assert isinstance(answer, events.Answer)
    assert isinstance(answer.result, Commit)
    assert apply(session.document.text, answer.result.edits) == "total = one + two\n"


def test_a_key_gives_the_same_answer_for_ever() -> None:
    session, first = effects_of(in_state(State.READY), events.Accepted(key="k1"))
    session = made(session)
    assert session.state is State.COMMITTED
    _, again = effects_of(session, events.Accepted(key="k1"))
    assert first == again
    _, other = effects_of(session, events.Accepted(key="k2"))
    assert other == [events.Answer(Refused(Refusal.APPLIED, Refusal.APPLIED.message))]


def test_an_earlier_draft_moves_along() -> None:
    session = two_lines(EVENTS[events.Finished], events.Refined(Wish(seed=1)))
    session, _ = edited(session, TextEdit(Span(0, 1), "longer"))
    session, _ = effects_of(session, events.WentBack())
    _, (answer,) = effects_of(session, events.Accepted())
    assert isinstance(answer, events.Answer)
    assert isinstance(answer.result, Commit)
    after = apply(session.document.text, answer.result.edits)
    assert after == "longer" + TWO[1:].replace("0", "price")


def test_an_earlier_draft_comes_back() -> None:
    ready = in_state(State.READY)
    session, _ = effects_of(ready, events.Refined(Wish(seed=1)))
    session, _ = effects_of(session, events.Finished((draft("cost"),), True))
    session, effects = effects_of(session, events.WentBack())
    assert session.drafts == ready.drafts
    assert effects == [events.Show(0, 0, ready.drafts), events.Tell(State.READY)]
    _, effects = effects_of(session, events.WentBack())
    assert effects == [events.Tell(State.READY, Refusal.UNKNOWN)]


def test_a_draft_that_breaks_the_syntax_is_asked_for_again_three_times() -> None:
    session = started()
    broken = events.Finished((draft("price )"),), True, ((Span(6, 7),),))
    opened = []
    for _ in range(MAX_REPAIRS):
        session, effects = effects_of(session, broken)
        assert session.state is State.DRAFTING
        ask = effects[0]
        assert isinstance(ask, events.Ask)
        opened.append(ask.regions.holes[0].parts)
        gaps = sum(isinstance(part, Gap) for part in ask.regions.holes[0].parts)
        broken = events.Finished((draft("price )"),) * gaps, True, ((Span(6, 7),),))
    assert opened[0] == (Pinned("price "), Gap(old=")"))
    assert opened[-1][-1] == Gap(old=opened[-1][-1].old)  # the last try opens the whole hole
    session, effects = effects_of(session, broken)
    assert session.state is State.READY
    assert effects == [events.Show(0, 0, session.drafts), events.Tell(State.READY, Refusal.UNSOUND)]
    findings = Findings(breaks_syntax=True)
    _, refused = effects_of(session, events.Accepted(findings=findings))
    assert refused == [events.Answer(Refused(Refusal.UNSOUND, Refusal.UNSOUND.message))]
    _, (answer,) = effects_of(session, events.Accepted(findings=findings, anyway=True))
    assert isinstance(answer, events.Answer)
    assert isinstance(answer.result, Commit)


def test_a_pin_freezes_its_span_and_opens_the_rest() -> None:
    session, effects = effects_of(in_state(State.READY), events.PinnedDown(0, Span(0, 3)))
    assert session.state is State.DRAFTING
    assert session.regions.holes[0].parts == (Pinned("pri"), Gap(old="ce"))
    ask = effects[0]
    assert isinstance(ask, events.Ask)
    assert ask.attempt == 1
    session, _ = effects_of(session, events.Finished((draft("or"),), True))
    assert session.drafts[0].text == "prior"


def test_a_refine_keeps_the_pins() -> None:
    pinned, _ = effects_of(in_state(State.READY), events.PinnedDown(0, Span(0, 3)))
    done, _ = effects_of(pinned, events.Finished((draft("or"),), True))
    again, _ = effects_of(done, events.Refined(Wish(seed=7)))
    assert again.regions.holes[0].parts == (Pinned("pri"), Gap(old="or"))
    assert again.wish.seed == 7


def test_the_diagram_in_the_documents_is_that_of_the_table() -> None:
    page = (Path(__file__).parents[2] / "server" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert into(page) == page, "run: python -m frostline.core.diagram"
    for state in State:
        assert state.value in drawn()

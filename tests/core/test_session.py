"""The state table: every pair is listed, or raises and changes nothing."""

import itertools
from typing import get_args

import pytest

from frostline.core import session as core
from frostline.core.barrier import Commit, Refusal
from frostline.core.provisional import Draft, Piece, PieceState
from frostline.core.regions import Gap, Hole, Pinned, Regions
from frostline.core.session import MOVES, Session, State, UnexpectedEvent, Wish
from frostline.core.text import Document, Span

TEXT = "total = 0\n"
DOCUMENT = Document.of("file:///a.py", 1, "python", TEXT)
REGIONS = Regions.tile(len(TEXT), [Hole(Span(8, 9))])
NEWER = Document.of("file:///a.py", 2, "python", "total = 10\n")


def draft(text: str, state: PieceState = PieceState.STABLE) -> Draft:
    return Draft((Piece(text, state, 0.9),) if text else (), True, 0.9)


EVENTS: dict[type, core.Event] = {
    core.Begun: core.Begun(),
    core.Stepped: core.Stepped(1, 3, (draft("░", PieceState.OPEN),)),
    core.Finished: core.Finished((draft("price"),), True),
    core.Failed: core.Failed(Refusal.LOST),
    core.Edited: core.Edited(NEWER),
    core.Closed: core.Closed(),
    core.Accepted: core.Accepted(),
    core.Applied: core.Applied(),
    core.Rejected: core.Rejected(),
    core.Replaced: core.Replaced(),
    core.PinnedDown: core.PinnedDown(0, Span(0, 2)),
    core.Refined: core.Refined(Wish(seed=1)),
}


def started(wish: Wish | None = None) -> Session:
    session, _ = Session("s1", DOCUMENT, REGIONS, wish or Wish()).on(core.Begun())
    return session


def in_state(state: State) -> Session:
    paths: dict[State, list[type]] = {
        State.DRAFTING: [],
        State.READY: [core.Finished],
        State.COMMITTING: [core.Finished, core.Accepted],
        State.COMMITTED: [core.Finished, core.Accepted, core.Applied],
        State.REFUSED: [core.Failed],
        State.CANCELLED: [core.Rejected],
    }
    session = started()
    for kind in paths[state]:
        session, _ = session.on(EVENTS[kind])
    assert session.state is state
    return session


def test_the_events_here_are_all_there_are() -> None:
    assert set(EVENTS) == set(get_args(core.Event))


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
        assert after.document is session.document
    else:
        with pytest.raises(UnexpectedEvent, match=state.value):
            session.on(EVENTS[kind])
        assert session == in_state(state)


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


def effects_of(session: Session, event: core.Event) -> tuple[Session, list[core.Effect]]:
    after, effects = session.on(event)
    return after, list(effects)


def test_a_begin_asks_the_worker() -> None:
    _, effects = Session("s1", DOCUMENT, REGIONS).on(core.Begun())
    assert effects == (core.Ask(REGIONS, Wish(), 0), core.Tell(State.DRAFTING))


def test_an_accept_gives_one_commit_and_then_the_same_again() -> None:
    ready = in_state(State.READY)
    committing, first = effects_of(ready, core.Accepted())
    _, again = effects_of(committing, core.Accepted())
    assert first == again
    (answer,) = first
    assert isinstance(answer, core.Answer)
    assert isinstance(answer.result, Commit)
    assert answer.result.version == 1
    assert [edit.text for edit in answer.result.edits] == ["price"]


def test_after_the_commit_an_accept_is_told_that_it_is_done() -> None:
    _, effects = effects_of(in_state(State.COMMITTED), core.Accepted())
    assert effects == [core.Answer(Refusal.APPLIED)]


def test_the_editors_own_report_of_the_edit_is_the_commit() -> None:
    committing = in_state(State.COMMITTING)
    after = Document.of("file:///a.py", 2, "python", "total = price\n")
    session, effects = effects_of(committing, core.Edited(after))
    assert session.state is State.COMMITTED
    assert effects == [core.Tell(State.COMMITTED)]


def test_another_text_while_the_edit_is_on_its_way_is_stale() -> None:
    session, effects = effects_of(in_state(State.COMMITTING), core.Edited(NEWER))
    assert session.refusal is Refusal.STALE
    assert effects == [core.Tell(State.REFUSED, Refusal.STALE)]


def test_an_edit_while_drafting_stops_the_worker() -> None:
    session, effects = effects_of(started(), core.Edited(NEWER))
    assert session.refusal is Refusal.STALE
    assert effects == [core.Stop(), core.Tell(State.REFUSED, Refusal.STALE)]


def test_a_wish_to_commit_by_itself_is_one() -> None:
    session, effects = effects_of(started(Wish(converged=True)), EVENTS[core.Finished])
    assert session.state is State.COMMITTING
    assert isinstance(effects[-1], core.Answer)


def test_a_draft_that_ended_by_its_budget_waits_for_the_user() -> None:
    done = core.Finished((draft("price"),), converged=False)
    session, _ = effects_of(started(Wish(converged=True)), done)
    assert session.state is State.READY
    _, effects = effects_of(session, core.Accepted())
    assert isinstance(effects[0], core.Answer)
    assert isinstance(effects[0].result, Commit)


def test_a_draft_that_breaks_the_syntax_is_asked_for_again_three_times() -> None:
    session = started()
    broken = core.Finished((draft("price )"),), True, ((Span(6, 7),),))
    opened = []
    for _ in range(core.MAX_REPAIRS):
        session, effects = effects_of(session, broken)
        assert session.state is State.DRAFTING
        ask = effects[0]
        assert isinstance(ask, core.Ask)
        opened.append(ask.regions.holes[0].parts)
        gaps = sum(isinstance(part, Gap) for part in ask.regions.holes[0].parts)
        broken = core.Finished((draft("price )"),) * gaps, True, ((Span(6, 7),),))
    assert opened[0] == (Pinned("price "), Gap(old=")"))
    assert opened[-1][-1] == Gap(old=opened[-1][-1].old)  # the last try opens the whole hole
    session, effects = effects_of(session, broken)
    assert session.refusal is Refusal.UNSOUND
    assert effects == [core.Tell(State.REFUSED, Refusal.UNSOUND)]


def test_a_pin_freezes_its_span_and_opens_the_rest() -> None:
    session, effects = effects_of(in_state(State.READY), core.PinnedDown(0, Span(0, 3)))
    assert session.state is State.DRAFTING
    assert session.regions.holes[0].parts == (Pinned("pri"), Gap(old="ce"))
    ask = effects[0]
    assert isinstance(ask, core.Ask)
    assert ask.attempt == 1
    session, _ = effects_of(session, core.Finished((draft("or"),), True))
    assert session.drafts[0].text == "prior"


def test_a_refine_keeps_the_pins() -> None:
    pinned, _ = effects_of(in_state(State.READY), core.PinnedDown(0, Span(0, 3)))
    done, _ = effects_of(pinned, core.Finished((draft("or"),), True))
    again, _ = effects_of(done, core.Refined(Wish(seed=7)))
    assert again.regions.holes[0].parts == (Pinned("pri"), Gap(old="or"))
    assert again.wish.seed == 7

"""The barrier: nothing frozen ever changes, and each rule has its own refusal, in order."""

from hypothesis import given
from hypothesis import strategies as st

from frostline.core.barrier import (
    NO_FINDINGS,
    Commit,
    Findings,
    Refusal,
    Refused,
    check,
    keeps_frozen,
)
from frostline.core.provisional import Draft, Piece, PieceState, edits_for
from frostline.core.regions import Hole, Regions
from frostline.core.text import Document, Span, TextEdit, apply
from harness.texts import TEXTS

TEXT = "total = 0\n"
DOCUMENT = Document.of("file:///a.py", 1, "python", TEXT)
REGIONS = Regions.tile(len(TEXT), [Hole(Span(8, 9))])


def draft(text: str, state: PieceState = PieceState.STABLE, *, complete: bool = True) -> Draft:
    return Draft((Piece(text, state, 0.9),), complete, 0.9)


def ask(**changes: object) -> Commit | Refusal:
    given: dict = {
        "key": "k",
        "drafted_on": DOCUMENT,
        "current": DOCUMENT,
        "regions": REGIONS,
        "drafts": [draft("price")],
        "settled": True,
        "by_request": True,
        "findings": NO_FINDINGS,
        **changes,
    }
    given.setdefault("edits", edits_for(DOCUMENT, REGIONS, given["drafts"]))
    result = check(**given)
    return result.refusal if isinstance(result, Refused) else result


def test_a_sound_draft_is_a_commit() -> None:
    assert ask() == Commit("k", "file:///a.py", 1, (TextEdit(Span(8, 9), "price"),))


def test_each_rule_has_its_refusal_and_the_first_one_answers() -> None:
    newer = Document.of("file:///a.py", 2, "python", TEXT)
    cases: dict[Refusal, dict[str, object]] = {
        Refusal.CLOSED: {"current": None},
        Refusal.INCOMPLETE: {"drafts": [draft("pri", complete=False)]},
        Refusal.UNSTABLE: {"settled": False},
        Refusal.STALE: {"current": newer},
        Refusal.FROZEN: {"edits": (TextEdit(Span(0, 5), "sum"),)},
        Refusal.FORBIDDEN: {"findings": Findings("no", True, "no", "no")},
        Refusal.UNSOUND: {"findings": Findings("", True, "no", "no")},
        Refusal.APPLIED: {"applied": frozenset({"k"})},
        Refusal.RISKY: {"findings": Findings(risk="no"), "by_request": False},
    }
    for refusal, changes in cases.items():
        assert ask(**changes) is refusal
    everything: dict[str, object] = {}
    for refusal, changes in reversed(cases.items()):
        everything |= changes
        assert ask(**everything) is refusal


def test_a_complaint_of_a_check_is_unsound_and_says_what_it_is() -> None:
    result = check(
        "k",
        DOCUMENT,
        DOCUMENT,
        REGIONS,
        [draft("price")],
        (),
        settled=True,
        by_request=True,
        findings=Findings(complaint="E1: no"),
    )
    assert result == Refused(Refusal.UNSOUND, "E1: no")


def test_without_a_request_every_slot_has_to_be_stable() -> None:
    drafts = [draft("price", PieceState.DRAFT)]
    assert ask(drafts=drafts, by_request=False) is Refusal.UNSTABLE
    assert isinstance(ask(drafts=drafts, by_request=True), Commit)


def test_an_open_slot_is_incomplete() -> None:
    assert ask(drafts=[draft("░", PieceState.OPEN)]) is Refusal.INCOMPLETE


def test_refusals_are_sentences_and_codes_are_their_own() -> None:
    codes = [refusal.code for refusal in Refusal]
    assert len(set(codes)) == len(codes)
    assert all(refusal.message.endswith(".") for refusal in Refusal)


@given(TEXTS, st.data())
def test_what_is_committed_changes_nothing_frozen(text: str, data: st.DataObject) -> None:
    document = Document.of("file:///a.py", 1, "python", text)
    text = document.text
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    spans = [Span(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    regions = Regions.tile(len(text), [Hole(span, multiline=True) for span in spans])
    drafts = [draft(data.draw(TEXTS)) for _ in spans]
    result = check(
        "k",
        document,
        document,
        regions,
        drafts,
        edits_for(document, regions, drafts),
        settled=True,
        by_request=True,
        findings=NO_FINDINGS,
    )
    assert isinstance(result, Commit)
    after = apply(text, result.edits)
    place = 0
    for span in regions.frozen:
        frozen = text[span.start : span.end]
        place = after.index(frozen, place)
        assert span.start != 0 or place == 0
        place += len(frozen)
    assert after.endswith(text[regions.frozen[-1].start :])
    shift = sum(len(edit.text) - len(edit.span) for edit in result.edits)
    assert len(after) == len(text) + shift


@given(TEXTS, st.data())
def test_an_edit_outside_the_holes_is_seen(text: str, data: st.DataObject) -> None:
    text = Document.of("file:///a.py", 1, "python", text + "ab").text
    hole = Span(len(text), len(text))
    regions = Regions.tile(len(text), [Hole(hole)])
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert not keeps_frozen(text, regions, [TextEdit(Span(start, end), "other")])
    assert keeps_frozen(text, regions, [TextEdit(hole, "other")])


@given(TEXTS)
def test_a_draft_of_what_stands_there_is_no_edit(text: str) -> None:
    document = Document.of("file:///a.py", 1, "python", text)
    regions = Regions.tile(len(document.text), [Hole(Span(0, len(document.text)))])
    lf = document.text.replace("\r\n", "\n").replace("\r", "\n")
    edits = edits_for(document, regions, [Draft((Piece(lf, PieceState.STABLE),))])
    # Mixed ends become one kind inside a hole; with one kind of them there is nothing to do.
    if (
        len({line[len(line.rstrip("\r\n")) :] for line in document.lines if line[-1:] in "\r\n"})
        <= 1
    ):
        assert edits == () or not document.text

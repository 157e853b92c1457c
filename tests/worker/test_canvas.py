"""Text and gaps to slots and back: nothing is lost at a border, and a window never outgrows the model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.errors import WorkerRefused
from frostline.models.spec import ModelSpec
from frostline.models.tokens import Tokens
from frostline.wire.messages import Gap, Text
from frostline.worker import canvas as canvases
from frostline.worker.canvas import BLOCK_ROOM, LINE_ROOM, Canvas, GapSlots, Spelled
from models import tiny


@dataclass(frozen=True)
class Desk:
    """A model as far as a canvas looks at it: one token a byte, save a few longer pieces."""

    tokens: Tokens
    spec: ModelSpec

    def build(self, *segments: Text | Gap | str, preamble: str = "", **given: Any) -> Canvas:
        parts = [Text(one) if isinstance(one, str) else one for one in segments]
        return canvases.build(parts, preamble, self, **{"at_start": False, **given})

    def sees(self, **changes: Any) -> "Desk":
        return replace(self, spec=msgspec.structs.replace(self.spec, **changes))

    def shown(self, canvas: Canvas) -> str:
        """Return the window as text: ░ for a slot, ^ for the begin token."""
        slots = set(canvas.slots.tolist())
        return "".join(
            "░"
            if place in slots
            else "^"
            if one == tiny.BEGIN
            else self.tokens.spell([one]).decode()
            for place, one in enumerate(canvas.ids.tolist())
        )


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "tokenizer.json").write_text(tiny.tokenizer().to_str())
    return Desk(Tokens(folder), msgspec.convert(tiny.spec(), ModelSpec))


def gap(room: int = 3, **given: Any) -> Gap:
    return Gap(**{"id": 0, "room": room, **given})


# --- a window ---------------------------------------------------------------------------------------


def test_text_is_encoded_apart_on_both_sides_of_a_gap(desk: Desk) -> None:
    encode = desk.tokens.encode
    assert encode("return") != encode("re") + encode("turn")
    canvas = desk.build("re", gap(1), "turn")
    assert canvas.ids.tolist() == [*encode("re"), 0, *encode("turn")]
    assert canvas.slots.tolist() == [1]


def test_gaps_are_numbered_and_their_slots_lie_where_they_were(desk: Desk) -> None:
    canvas = desk.build("ab", gap(2, id=7), "c", gap(3, id=4), "d")
    assert desk.shown(canvas) == "ab░░c░░░d"
    assert canvas.slots.tolist() == [2, 3, 5, 6, 7]
    assert canvas.gap.tolist() == [0, 0, 1, 1, 1]
    assert [(one.id, one.start, one.count) for one in canvas.gaps] == [(7, 0, 2), (4, 2, 3)]
    assert canvas.gaps[1].slots == slice(2, 5)


def test_how_many_slots_a_gap_gets(desk: Desk) -> None:
    def count(**given: Any) -> int:
        strength = given.pop("strength", 1.0)
        one = Gap(**{"id": 0, **given})
        return desk.sees(max_context=512).build("a", one, strength=strength).gaps[0].count

    assert count() == BLOCK_ROOM
    assert count(multiline=False) == LINE_ROOM
    # A rewrite may become a quarter longer, at least two tokens; less so the less it changes.
    assert count(old="x" * 40) == 50
    assert count(old="x" * 40, strength=0.5) == 45
    assert count(old="xy") == 4
    # A room that is asked for is given; text that stays needs its own.
    assert count(room=7) == 7
    assert count(room=7, old="x" * 40) == 7
    assert count(room=7, old="x" * 40, strength=0.5) == 40
    # Its beginning takes slots too.
    assert count(room=7, required="ab") == 9
    assert count(required="ab") == BLOCK_ROOM + 2
    assert count(room=0) == 1


def test_without_pads_a_rewrite_has_as_many_slots_as_before(desk: Desk) -> None:
    fixed = desk.sees(length=msgspec.convert({"kind": "fixed"}, type(desk.spec.length)))
    for strength in (0.5, 1.0):
        canvas = fixed.build("a", Gap(0, old="x" * 40), strength=strength)
        assert canvas.gaps[0].count == 40


def test_old_text_is_kept_with_what_it_has_to_begin_with(desk: Desk) -> None:
    one = desk.build("x = ", gap(required="re", old="turn"), strength=0.5).gaps[0]
    assert list(one.old) == desk.tokens.encode("return")
    assert one.required == b"re"


def test_to_score_a_gap_has_exactly_its_old_slots(desk: Desk) -> None:
    canvas = desk.build("a", Gap(0, old="xyz"), "b", Gap(1, old=""), spare=False)
    assert [one.count for one in canvas.gaps] == [3, 0]


# --- what does not fit ------------------------------------------------------------------------------


def test_the_far_ends_go_first(desk: Desk) -> None:
    before, behind = "".join(map(str, range(100))), "".join(map(str, range(99, 0, -1)))
    canvas = desk.sees(max_context=64).build(before, gap(4), behind)
    left, right = desk.shown(canvas).split("░░░░")
    assert before.endswith(left)
    assert behind.startswith(right)
    # Two thirds of the room before, one behind.
    assert (len(left), len(right)) == (40, 19)


def test_unused_room_goes_to_the_other_side(desk: Desk) -> None:
    small = desk.sees(max_context=64)
    assert desk.shown(small.build("a" * 200, gap(4), "b")) == "a" * 58 + "░░░░b"
    assert desk.shown(small.build("a", gap(4), "b" * 200)) == "a░░░░" + "b" * 58
    assert desk.shown(small.build(gap(4), "b" * 200)) == "░░░░" + "b" * 59
    assert desk.shown(small.build("a" * 200, gap(4))) == "a" * 59 + "░░░░"


def test_long_text_between_gaps_loses_its_middle(desk: Desk) -> None:
    between = "(" + "." * 200 + ")"
    shown = desk.shown(desk.sees(max_context=64).build("a", gap(2), between, gap(2), "b"))
    assert shown.count("░") == 4
    inner = shown[shown.index("░░") + 2 : shown.rindex("░░")]
    assert inner == "(" + "." * 27 + ")"


def test_of_several_texts_between_gaps_the_short_ones_stay_whole(desk: Desk) -> None:
    parts = ["abc", "." * 100, "xyz"]
    canvas = desk.sees(max_context=64).build(
        gap(2), parts[0], gap(2), parts[1], gap(2), parts[2], gap(2)
    )
    assert desk.shown(canvas) == "░░abc░░" + "." * 21 + "░░xyz░░"


def test_a_preamble_comes_only_where_it_fits_whole(desk: Desk) -> None:
    small = desk.sees(max_context=64)
    assert desk.shown(small.build("a", gap(2), "b", preamble="import x\n")) == "import x\na░░b"
    assert "import" not in desk.shown(small.build("a" * 58, gap(2), preamble="import x\n"))
    exact = desk.shown(small.build("a" * 52, gap(2), preamble="import x\n"))
    assert exact == "import x\n" + "a" * 52 + "░░"
    assert "import" not in desk.shown(small.build("a" * 53, gap(2), preamble="import x\n"))


def test_the_begin_token_stands_only_before_the_first_token_of_a_file(desk: Desk) -> None:
    small = desk.sees(max_context=64)
    assert desk.shown(small.build("a", gap(), at_start=True)) == "^a░░░"
    assert desk.shown(small.build("a", gap(), at_start=False)) == "a░░░"
    # Not where the file's start was cut off,
    assert desk.shown(small.build("a" * 99, gap(), at_start=True))[0] == "a"
    # nor where something stands above; but before a gap at the very start, whatever is behind it.
    assert desk.shown(small.build("a", gap(), at_start=True, preamble="p"))[0] == "p"
    assert desk.shown(small.build(gap(), at_start=True)) == "^░░░"
    assert desk.shown(small.build(gap(), "b" * 99, at_start=True)) == "^░░░" + "b" * 60
    assert desk.shown(desk.sees(begin_of_file=None).build("a", gap(), at_start=True)) == "a░░░"


@pytest.mark.complaint(24)
@given(st.data())
def test_a_window_never_outgrows_the_model_and_keeps_all_slots(desk: Desk, data: Any) -> None:
    size = st.integers(0, 200)
    segments: list[Text | Gap] = []
    for number in range(data.draw(st.integers(1, 5), label="gaps")):
        if data.draw(st.booleans(), label="text"):
            segments.append(Text("t" * data.draw(size)))
        segments.append(gap(data.draw(st.integers(1, 12)), id=number))
    if data.draw(st.booleans()):
        segments.append(Text("t" * data.draw(size)))
    limit = data.draw(st.integers(100, 200), label="context")
    canvas = desk.sees(max_context=limit).build(
        *segments, preamble="p" * data.draw(size), at_start=data.draw(st.booleans())
    )
    assert len(canvas.ids) <= limit
    gaps = [one for one in segments if isinstance(one, Gap)]
    assert len(canvas.slots) == sum(one.room or 0 for one in gaps)
    assert canvas.slots.tolist() == sorted(set(canvas.slots.tolist()))
    assert [one.id for one in canvas.gaps] == [one.id for one in gaps]
    # Room is not wasted: text is left out only where there is too much of it.
    texts = sum(len(one.text) for one in segments if isinstance(one, Text))
    shown = desk.shown(canvas)
    assert shown.count("t") == texts or len(gaps) > 1 or len(canvas.ids) >= limit - 2


def test_too_much_is_refused_with_the_number_that_would_do(desk: Desk) -> None:
    with pytest.raises(WorkerRefused) as refused:
        desk.build("a", gap(200))
    assert refused.value.code == "too-long"
    assert str(refused.value) == (
        "this selection needs 200 tokens and tiny can fill 95 at once; select less"
    )
    assert desk.build("a", gap(95)).gaps[0].count == 95
    with pytest.raises(WorkerRefused):
        desk.build("a", gap(96))
    with pytest.raises(WorkerRefused, match="needs 120 tokens"):
        desk.build("a", gap(60, id=1), "b", gap(60, id=2))


@pytest.mark.parametrize("segments", [[], ["only text"], ["a", "b"]])
def test_nothing_to_fill_is_said(desk: Desk, segments: list[str]) -> None:
    with pytest.raises(WorkerRefused, match="nothing to fill"):
        desk.build(*segments)


# --- slots to text ----------------------------------------------------------------------------------

BYTES = [bytes([value]) for value in range(256)] + [b"", b"def ", "日本".encode()]
PAD = 256


def spell(
    *tokens: int | bytes, states: Sequence[int] | None = None, required: bytes = b""
) -> Spelled:
    ids = [BYTES.index(one) if isinstance(one, bytes) else one for one in tokens]
    one = GapSlots(0, 0, len(ids), True, required, ())
    sure = [1 - place / 100 for place in range(len(ids))]
    return canvases.spell(one, ids, states or [1] * len(ids), sure, BYTES, PAD)


def parts(spelled: Spelled) -> list[tuple[str, str]]:
    return [(piece.state, piece.text) for piece in spelled.pieces]


def test_slots_of_one_state_are_one_piece() -> None:
    spelled = spell(b"def ", b"f", b"(", b"x", PAD, states=[2, 2, 1, 0, 2])
    assert parts(spelled) == [("stable", "def f"), ("draft", "("), ("open", "x")]
    assert spelled.complete
    assert spelled.text == "def f(x"
    assert spelled.pieces[1].confidence == 0.98


def test_a_character_that_two_slots_share_is_as_settled_as_the_lesser() -> None:
    first, second = (bytes([one]) for one in "é".encode())
    assert parts(spell(first, second, b"a", states=[2, 0, 2])) == [("open", "é"), ("stable", "a")]


def test_half_a_character_is_held_back() -> None:
    one, two, three = (bytes([byte]) for byte in "日".encode())
    assert parts(spell(b"a", one, two)) == [("draft", "a")]
    assert not spell(b"a", one, two).complete
    assert spell(b"a", one, two, three).text == "a日"
    # In the middle of a text it is left out until its other half comes.
    held = spell(b"a", one, two, b"b")
    assert (held.text, held.complete) == ("ab", False)


def test_pads_are_no_text() -> None:
    assert spell(PAD, PAD) == Spelled((), complete=True)


def test_the_required_beginning_is_taken_off() -> None:
    assert spell(b"p", b"r", b"i", b"n", required=b"pr").text == "in"
    # A token that spells the beginning and more is cut in the right place.
    assert spell(b"def ", b"f", required=b"de").text == "f f"


def test_a_beginning_that_is_not_spelled_yet_shows_nothing() -> None:
    assert spell(b"p", required=b"pr") == Spelled((), complete=False)
    assert spell(b"x", b"y", required=b"pr") == Spelled((), complete=False)
    assert spell(b"p", b"r", required=b"pr") == Spelled((), complete=True)


@given(st.binary(max_size=24), st.data())
def test_no_replacement_characters_whatever_the_bytes(raw: bytes, data: st.DataObject) -> None:
    states = [data.draw(st.integers(0, 2)) for _ in raw]
    spelled = spell(*(bytes([one]) for one in raw), states=states)
    assert spelled.text == raw.decode(errors="ignore")
    assert spelled.complete == (raw.decode(errors="replace") == raw.decode(errors="ignore"))
    assert all(piece.text for piece in spelled.pieces)
    neighbours = [piece.state for piece in spelled.pieces]
    assert all(a != b for a, b in pairwise(neighbours))
    assert all(0 <= piece.confidence <= 1 for piece in spelled.pieces)


@given(st.text(max_size=12), st.data())
def test_any_text_cut_anywhere_comes_back(text: str, data: st.DataObject) -> None:
    required = text[: data.draw(st.integers(0, len(text)))]
    spelled = spell(*(bytes([one]) for one in text.encode()), required=required.encode())
    assert required + spelled.text == text
    assert spelled.complete

"""Text and gaps to a window of slots, and slots back to text.

This is the one place where text and token slots meet. A window is encoded piece by piece, never
across the border of a gap, so no token stands half in frozen text. What does not fit the model's
context is left out from the far ends: it is model input only, and nothing of it is ever read back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from frostline.decoding.length import Resized
from frostline.errors import WorkerRefused
from frostline.models.backend import Backend
from frostline.models.spec import ModelSpec
from frostline.wire.messages import Gap, Piece, PieceState, Text

LINE_ROOM, BLOCK_ROOM = 16, 48
# What is written in order takes no more slots than it needs, so it gets as many times more.
IN_ORDER = 4
# A model that expands starts with this many, as DreamOn does.
FIRST_ROOM = 4
# Less context than this, and a model has nothing to go by.
LEAST_CONTEXT = 32
_STATES: tuple[PieceState, ...] = ("open", "draft", "stable")


@dataclass(frozen=True, slots=True)
class GapSlots:
    """One gap's slots: `count` of them from `start` on.

    Attributes:
        old: tokens of the text that stands there now, what it is required to begin with included.
        without: characters that its text may not hold.
        indent: how each of its lines has to begin.
        fixed: whether the user said how many slots it has.
    """

    id: int
    start: int
    count: int
    multiline: bool
    required: bytes
    old: tuple[int, ...]
    without: str = ""
    indent: str = ""
    fixed: bool = False

    @property
    def slots(self) -> slice:
        return slice(self.start, self.start + self.count)


@dataclass(frozen=True, slots=True)
class Canvas:
    """A window of tokens with its slots.

    Attributes:
        ids: (length,) the window; frozen tokens, and anything at slots.
        slots: (slots,) where the slots lie in it, ascending.
        gap: (slots,) index into `gaps` of each slot.
    """

    ids: Tensor
    slots: Tensor
    gap: Tensor
    gaps: tuple[GapSlots, ...]


def build(
    segments: Sequence[Text | Gap],
    preamble: str,
    backend: Backend,
    *,
    at_start: bool,
    strength: float = 1.0,
    spare: bool = True,
) -> Canvas:
    """Return the canvas of a request.

    Args:
        strength: share of the old text that will be noised; decides how much longer it may get.
        spare: False gives each gap exactly the slots of its old text, to score it.

    Raises:
        WorkerRefused: there is no gap, or the gaps alone are more than the model can see.
    """
    tokens, spec = backend.tokens, backend.spec
    pieces = [
        tokens.encode(part.text)
        if isinstance(part, Text)
        else _slots(part, backend, strength, spare=spare)
        for part in segments
    ]
    texts = [(place, piece) for place, piece in enumerate(pieces) if isinstance(piece, list)]
    wanted = sum(piece.count for piece in pieces if isinstance(piece, GapSlots))
    if not wanted:
        raise WorkerRefused("empty", "there is nothing to fill")
    room = spec.max_context - wanted - 1
    most = spec.max_context - LEAST_CONTEXT - 1
    between = room // 2
    if spec.attention == "prefix_canvas":
        # What stands between the holes is on the canvas as well.
        most = min(most, spec.block)
        between = min(between, spec.block - wanted)
    if wanted > most:
        raise WorkerRefused(
            "too-long",
            f"this selection needs {wanted} tokens and {spec.name} can fill {most} at once; select less",
        )
    trimmed = _fit([piece for _, piece in texts], _ends(pieces), room, between)
    starts = at_start and (isinstance(segments[0], Gap) or trimmed[0] == texts[0][1])
    for (place, _), piece in zip(texts, trimmed, strict=True):
        pieces[place] = piece
    head = tokens.encode(preamble)
    if len(head) > room - sum(map(len, trimmed)):
        head = []
    if not head and starts and spec.begin_of_file is not None:
        head = [spec.begin_of_file]
    return _assemble(head, pieces)


def _slots(gap: Gap, backend: Backend, strength: float, *, spare: bool) -> GapSlots:
    encode = backend.tokens.encode
    old = encode(gap.required + gap.old) if gap.old else []
    beginning = len(encode(gap.required))
    if old and backend.spec.noise.kind == "uniform":
        # Its beginning stays on such a canvas as it is, in tokens of its own.
        old = encode(gap.required) + encode(gap.old)
    if not spare:
        room = len(old)
    elif gap.room is not None:
        room = max(gap.room + beginning, 1 if strength >= 1 else len(old))
    elif old and backend.spec.attention == "causal":
        room = max(2 * len(old), beginning + _first_room(backend.spec, gap))
    elif old:
        # Without pads every slot becomes text, so a rewrite gets as many as there were.
        room = len(old) + (0 if backend.spec.pad is None else _more(len(old), strength))
    else:
        room = beginning + _first_room(backend.spec, gap)
    return GapSlots(
        gap.id,
        0,
        room,
        gap.multiline,
        gap.required.encode(),
        tuple(old),
        gap.without,
        gap.indent,
        gap.room is not None,
    )


def _first_room(spec: ModelSpec, gap: Gap) -> int:
    if spec.length.kind == "expand_delete":
        return FIRST_ROOM
    room = BLOCK_ROOM if gap.multiline else LINE_ROOM
    return room * IN_ORDER if spec.attention == "causal" else room


def _more(length: int, strength: float) -> int:
    """Return how many slots a rewrite gets beyond its old text: a quarter, at least two."""
    return round(strength * max(2, length // 4))


def resized(canvas: Canvas, to: Resized) -> Canvas:
    """Return the canvas with other slots, between the same frozen tokens."""
    source = to.source.cpu()
    count = torch.ones_like(canvas.ids)
    count[canvas.slots] = torch.bincount(source, minlength=len(canvas.slots))
    inside = torch.zeros_like(canvas.ids, dtype=torch.bool)
    inside[canvas.slots] = True
    gaps, start = [], 0
    gap = canvas.gap[source]
    for number, one in enumerate(canvas.gaps):
        gaps.append(replace(one, start=start, count=int((gap == number).sum())))
        start += gaps[-1].count
    slots = torch.repeat_interleave(inside, count).nonzero().flatten()
    return Canvas(torch.repeat_interleave(canvas.ids, count), slots, gap, tuple(gaps))


def _ends(pieces: Sequence[list[int] | GapSlots]) -> tuple[bool, bool]:
    return isinstance(pieces[0], list), isinstance(pieces[-1], list)


def _fit(
    texts: list[list[int]], ends: tuple[bool, bool], room: int, most_between: int
) -> list[list[int]]:
    """Return the texts cut to `room` tokens in all.

    Text between gaps stays whole while it takes at most `most_between`, else the longer ones lose
    their middles. Of what is left the text before gets two thirds and the text behind one, each the
    other's unused share.
    """
    first = 1 if ends[0] else 0
    last = len(texts) - 1 if ends[1] and len(texts) > first else len(texts)
    between = _hollowed(texts[first:last], most_between)
    left = room - sum(map(len, between))
    before = texts[0] if first else []
    behind = texts[-1] if last < len(texts) else []
    for_behind = min(len(behind), max(left // 3, left - len(before)))
    for_before = min(len(before), left - for_behind)
    result = list(between)
    if first:
        result.insert(0, before[len(before) - for_before :])
    if last < len(texts):
        result.append(behind[:for_behind])
    return result


def _hollowed(texts: list[list[int]], room: int) -> list[list[int]]:
    """Return the texts in `room` tokens: the short ones whole, the others' ends, all of one length."""
    result = list(texts)
    places = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    for done, place in enumerate(places):
        text, share = texts[place], room // (len(places) - done)
        if len(text) > share:
            result[place] = text[: share - share // 2] + text[len(text) - share // 2 :]
        room -= len(result[place])
    return result


def _assemble(head: list[int], pieces: Sequence[list[int] | GapSlots]) -> Canvas:
    ids, slots, gap = list(head), list[int](), list[int]()
    gaps: list[GapSlots] = []
    for piece in pieces:
        if isinstance(piece, list):
            ids += piece
            continue
        placed = replace(piece, start=len(slots))
        slots += range(len(ids), len(ids) + piece.count)
        gap += [len(gaps)] * piece.count
        ids += [0] * piece.count
        gaps.append(placed)
    as_tensor = [torch.tensor(values, dtype=torch.long) for values in (ids, slots, gap)]
    return Canvas(as_tensor[0], as_tensor[1], as_tensor[2], tuple(gaps))


@dataclass(frozen=True, slots=True)
class Spelled:
    """A gap as text. `complete` is False where bytes are left that make no character."""

    pieces: tuple[Piece, ...]
    complete: bool

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


def spell(
    gap: GapSlots,
    tokens: Sequence[int],
    states: Sequence[int],
    confidence: Sequence[float],
    spelling: Sequence[bytes],
    pad: int | None,
) -> Spelled:
    """Return the text of a gap's slots in pieces.

    Args:
        states: for each slot 0 for open, 1 for draft, 2 for stable.
        spelling: the bytes of each token.

    A character that several slots share has the state of the least settled of them; bytes that make
    no character (yet) are held back. What the gap was required to begin with is taken off.
    """
    data = bytearray()
    of_byte: list[tuple[int, float]] = []
    for token, state, sure in zip(tokens, states, confidence, strict=True):
        if token == pad:
            continue
        spelled = spelling[token]
        data += spelled
        of_byte += [(state, sure)] * len(spelled)
    skip = len(gap.required)
    if not data.startswith(gap.required):
        return Spelled((), complete=False)
    pieces: list[Piece] = []
    letters: list[str] = []
    run: list[tuple[int, float]] = []
    complete, place = True, skip

    def close() -> None:
        if letters:
            mean = sum(sure for _, sure in run) / len(run)
            pieces.append(Piece("".join(letters), _STATES[run[0][0]], round(mean, 4)))
            letters.clear()
            run.clear()

    while place < len(data):
        length = _length(data[place])
        try:
            letter = bytes(data[place : place + length]).decode()
        except UnicodeDecodeError:
            complete = False
            place += 1
            continue
        shared = of_byte[place : place + length]
        state = min(state for state, _ in shared)
        if run and run[0][0] != state:
            close()
        letters.append(letter)
        run.append((state, min(sure for _, sure in shared)))
        place += length
    close()
    return Spelled(tuple(pieces), complete)


def _length(lead: int) -> int:
    """Return how many bytes the UTF-8 character takes that begins with `lead`."""
    if lead < 0x80:
        return 1
    return 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4

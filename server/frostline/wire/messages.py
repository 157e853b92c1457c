"""The messages, typed with msgspec.

Text and holes are all that the two sides share: the editor side never sees a token id, the worker
never sees a URI, a version or a position. A message is one msgpack map with its kind under "type".
"""

from __future__ import annotations

from typing import Literal

import msgspec

PROTOCOL = 1

PieceState = Literal["open", "draft", "stable"]
WorkerState = Literal["off", "starting", "loading", "ready", "busy", "lost"]
Outcome = Literal["converged", "budget", "cancelled"]
Order = Literal["confidence", "margin", "entropy"]
Schedule = Literal["linear", "cosine"]


class Message(msgspec.Struct, frozen=True, tag_field="type", forbid_unknown_fields=False):
    """Base of all messages; `tag_field` carries the kind."""


# --- parts of a request -------------------------------------------------------------------------


class Text(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    """Frozen text, or text of a hole that is already decided. Model input only."""

    text: str


class Gap(msgspec.Struct, frozen=True, tag="gap", tag_field="type"):
    """A place to fill, with LF line ends whatever the file has.

    Attributes:
        id: names the gap in answers; unique in its request.
        old: what stands there now; a rewrite with strength below 1 starts from it.
        multiline: whether the new text may hold line ends.
        required: how the new text has to begin; given back without it.
        room: slots to give it, None for the worker's choice.
        without: characters that the new text may not hold, as they would end what is around the gap:
            the quote of its string, the brace of its f-string.
        indent: how each line of the new text has to begin, its first one and blank ones aside.
    """

    id: int
    old: str = ""
    multiline: bool = True
    required: str = ""
    room: int | None = None
    without: str = ""
    indent: str = ""


class Decoding(msgspec.Struct, frozen=True):
    """How to denoise.

    Attributes:
        steps: the budget of denoise steps, None for as many as there are slots.
        schedule: how the share of open slots falls over the budget.
        order: which open slots are the surest.
        threshold: settle every slot at or above this probability, None to go by the schedule alone.
        entropy_bound: settle the surest slots while their joint entropy (nats) stays within it.
        temperature: 0 takes the most likely token; above, tokens are sampled with `seed`.
        seed: makes a sampled draft repeatable.
    """

    steps: int | None = None
    schedule: Schedule = "cosine"
    order: Order = "confidence"
    threshold: float | None = 0.9
    entropy_bound: float | None = None
    temperature: float = 0.0
    seed: int = 0


# --- server to worker ---------------------------------------------------------------------------


class Hello(Message, frozen=True, tag="hello"):
    """The first message in both directions; a different protocol number ends the talk."""

    protocol: int = PROTOCOL
    token: str = ""
    version: str = ""


class Load(Message, frozen=True, tag="load"):
    """Load the model now rather than with the first request."""


class Infill(Message, frozen=True, tag="infill"):
    """Denoise the gaps between frozen text.

    Attributes:
        id: names the run in Step, Done, Failed and Cancel.
        segments: frozen text and gaps in reading order.
        preamble: text above the first segment that may be left out where room is short.
        at_start: whether the first segment begins where the file does.
        strength: share of each gap's old text that is noised before denoising starts, 0 to 1.
        interactive: goes before runs that nobody waits for.
    """

    id: str
    segments: tuple[Text | Gap, ...]
    preamble: str = ""
    at_start: bool = False
    instruction: str = ""
    strength: float = 1.0
    decoding: Decoding = Decoding()
    interactive: bool = True


class Cancel(Message, frozen=True, tag="cancel"):
    """Stop the run before its next step; unknown ids are none of anybody's business."""

    id: str


class Score(Message, frozen=True, tag="score"):
    """Ask how likely the model finds each gap's old text."""

    id: str
    segments: tuple[Text | Gap, ...]
    preamble: str = ""
    at_start: bool = False


class AskStatus(Message, frozen=True, tag="ask_status"):
    """Ask for a Status now; each change is told unasked."""


class Unload(Message, frozen=True, tag="unload"):
    """Give the model's memory back."""


# --- worker to server ---------------------------------------------------------------------------


class Piece(msgspec.Struct, frozen=True):
    """A run of a gap's text in one state.

    Attributes:
        text: for an open piece the present best guess.
        state: open (nothing decided), draft (decided, may still change), stable (will not change).
        confidence: mean probability of its slots, 0 to 1.
    """

    text: str
    state: PieceState
    confidence: float = 0.0


class GapDraft(msgspec.Struct, frozen=True):
    """A gap's pieces after one step; their texts joined are the present draft."""

    id: int
    pieces: tuple[Piece, ...]


class Step(Message, frozen=True, tag="step"):
    """What the gaps look like after denoise step `step` of at most `steps`."""

    id: str
    step: int
    steps: int
    gaps: tuple[GapDraft, ...]


class GapText(msgspec.Struct, frozen=True):
    """A gap's final text.

    Attributes:
        complete: False where a character was left unfinished.
        confidence: geometric mean of the probabilities with which its tokens were settled.
    """

    id: int
    text: str
    complete: bool
    confidence: float


class Figures(msgspec.Struct, frozen=True):
    """What a run cost and how its stable marks fared (DESIGN, section 7).

    Attributes:
        steps: denoise steps taken.
        forwards: passes through the model.
        slots: token slots of all gaps.
        tokens: slots that became text.
        regret: share of slots shown as stable whose token changed later; None if none was shown.
        lead: mean steps between a slot's stable mark and the end; None if none was shown.
        model_ms: milliseconds inside the model.
        cpu_s: processor seconds of the run.
        verified: whether one last look at the whole window agrees with the text.
        shared: mean number of runs in the passes that this one had.
    """

    steps: int = 0
    forwards: int = 0
    slots: int = 0
    tokens: int = 0
    regret: float | None = None
    lead: float | None = None
    model_ms: float = 0.0
    cpu_s: float = 0.0
    verified: bool = False
    shared: float = 1.0


class Done(Message, frozen=True, tag="done"):
    """The end of a run: its texts, or for a cancelled one only what it cost."""

    id: str
    outcome: Outcome
    gaps: tuple[GapText, ...] = ()
    figures: Figures = Figures()


class Scored(Message, frozen=True, tag="scored"):
    """Mean log-probability (nats a token) of each gap's old text, in order of the gaps."""

    id: str
    log_probs: tuple[float, ...]
    tokens: tuple[int, ...]


class Failed(Message, frozen=True, tag="failed"):
    """A run, or with an empty id the connection, cannot go on; `message` says what to do."""

    id: str
    code: str
    message: str


class Status(Message, frozen=True, tag="status"):
    """How the worker is.

    Attributes:
        progress: 0 to 1 while loading.
        memory: bytes of resident memory.
        max_context: tokens the model sees at once; 0 until loaded.
        language: what it was trained on, empty for no claim.
        instruction: whether it follows instructions.
        cannot: what a loaded model cannot do, a sentence each.
        message: why there is no model.
    """

    state: WorkerState
    model: str = ""
    device: str = ""
    progress: float | None = None
    memory: int | None = None
    max_context: int = 0
    language: str = ""
    instruction: bool = False
    cannot: tuple[str, ...] = ()
    message: str = ""


ToWorker = Hello | Load | Infill | Cancel | Score | AskStatus | Unload
ToServer = Hello | Step | Done | Scored | Failed | Status

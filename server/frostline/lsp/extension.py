"""The `frostline/*` messages: live drafts for clients that can draw them.

Offered as `capabilities.experimental.frostline = {"version": 1}` and used when the client declares
the same. Names are camelCase on the wire, positions in the negotiated encoding. The editor plugins
mirror this file, and a test fails when they drift.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

VERSION = 1

BEGIN = "frostline/begin"
PROVISIONAL = "frostline/provisional"
STATE = "frostline/state"
ACCEPT = "frostline/accept"
APPLIED = "frostline/applied"
PIN = "frostline/pin"
REFINE = "frostline/refine"
REJECT = "frostline/reject"
BACK = "frostline/back"
STATUS = "frostline/status"

IntentName = Literal["infill", "rewrite", "skeleton", "repair"]
Scope = Literal["all", "stable", "hole", "line", "word"]
PieceState = Literal["open", "draft", "stable"]
SessionState = Literal["drafting", "ready", "committing", "committed", "refused", "cancelled"]
WorkerState = Literal["off", "starting", "loading", "ready", "busy", "lost"]


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Base: camelCase names, and what has its default is left out."""


class Position(msgspec.Struct, frozen=True):
    """A place in a document."""

    line: int
    character: int


class Range(msgspec.Struct, frozen=True):
    """From `start` up to `end`."""

    start: Position
    end: Position


class DocumentId(Wire, frozen=True):
    """A document and, where it matters, its version."""

    uri: str
    version: int | None = None


class HoleAsked(Wire, frozen=True):
    """Where to denoise: the client's range, which the server may snap to syntax."""

    range: Range


class Begin(Wire, frozen=True):
    """`frostline/begin`, a request. Answered by `Begun`.

    Attributes:
        intent: infill at a cursor or gap; rewrite a selection; skeleton fills the body around the
            first range, or all unfinished bodies of its class; repair denoises what a parser rejects.
        strength: share of the old text that is noised first, 0 to 1.
        length: slots for each hole.
        steps: budget of denoise steps.
        budget_ms: after this long the draft is taken as it is.
        commit: "converged" puts a stable draft that passes the barrier into the file by itself.
    """

    text_document: DocumentId
    holes: tuple[HoleAsked, ...]
    intent: IntentName = "infill"
    instruction: str = ""
    strength: float = 1.0
    length: int | None = None
    steps: int | None = None
    seed: int = 0
    budget_ms: int | None = None
    commit: Literal["manual", "converged"] = "manual"


class Told(Wire, frozen=True):
    """Why something was refused: a code for programs, a sentence for people."""

    code: str
    message: str


class HoleBegun(Wire, frozen=True):
    """A hole as it is denoised, snapped to syntax."""

    range: Range


class Begun(Wire, frozen=True):
    """The answer to begin: a session, or why there is none."""

    session: str = ""
    holes: tuple[HoleBegun, ...] = ()
    refusal: Told | None = None


class Piece(Wire, frozen=True):
    """A run of a draft. An open piece's text is the present best guess."""

    text: str
    state: PieceState
    confidence: float = 0.0


class HoleShown(Wire, frozen=True):
    """A hole's place in the document of `version`, and its draft."""

    range: Range
    pieces: tuple[Piece, ...]


class Provisional(Wire, frozen=True):
    """`frostline/provisional`, a notification: what to draw. Nothing of it is in the file."""

    session: str
    uri: str
    version: int
    step: int
    steps: int
    holes: tuple[HoleShown, ...]


class StateTold(Wire, frozen=True):
    """`frostline/state`, a notification.

    Attributes:
        next: with "committed", the session that goes on with the next block of a long rewrite, in
            the text as it is now. It is told of like any other.
    """

    session: str
    state: SessionState
    refusal: Told | None = None
    next: Begun | None = None
    metrics: dict[str, Any] | None = None


class Accept(Wire, frozen=True):
    """`frostline/accept`, a request. Answered by `Accepted`.

    Attributes:
        scope: the whole draft, one hole, or the next line, word or stable stretch of it; what is left
            stays on offer.
        hole: which hole; without it the first that has something.
        anyway: accept a draft that breaks the syntax.
        key: the client's name for this accept: asked again, the answer is the same and nothing new.
    """

    session: str
    scope: Scope = "all"
    hole: int | None = None
    anyway: bool = False
    key: str = ""


class Accepted(Wire, frozen=True):
    """A versioned WorkspaceEdit for the client to apply as one undo step, or a refusal."""

    edit: dict[str, Any] | None = None
    refusal: Told | None = None


class Applied(Wire, frozen=True):
    """`frostline/applied`, a notification of the client after its edit."""

    session: str
    version: int
    applied: bool = True


class Pin(Wire, frozen=True):
    """`frostline/pin`, a request: that provisional text freezes, the rest is denoised again.

    Attributes:
        span: start and end in the hole's draft text, in code points.
    """

    session: str
    hole: int
    span: tuple[int, int]


class Refine(Wire, frozen=True):
    """`frostline/refine`, a request: again, keeping pins."""

    session: str
    instruction: str | None = None
    strength: float | None = None
    seed: int | None = None


class Back(Wire, frozen=True):
    """`frostline/back`, a request: an earlier draft of the session, 1 for the one before."""

    session: str
    by: int = 1


class Reject(Wire, frozen=True):
    """`frostline/reject`, a request: the draft goes, the file was never touched."""

    session: str


class StatusTold(Wire, frozen=True):
    """`frostline/status`, a request without parameters and a notification.

    Attributes:
        progress: 0 to 1 while loading.
        memory: bytes that the worker takes.
        cannot: what the model that is loaded cannot do, a sentence each.
        message: why there is none.
    """

    worker: WorkerState
    model: str = ""
    device: str = ""
    progress: float | None = None
    memory: int | None = None
    cannot: tuple[str, ...] = ()
    message: str = ""


METHODS: dict[str, type[Wire]] = {
    BEGIN: Begin,
    PROVISIONAL: Provisional,
    STATE: StateTold,
    ACCEPT: Accept,
    APPLIED: Applied,
    PIN: Pin,
    REFINE: Refine,
    REJECT: Reject,
    BACK: Back,
    STATUS: StatusTold,
}

"""The words of a session: the states of a draft, what can happen to it, and what that makes others do.

    State      where a draft is
    Wish       how it is to be made
    events     what the worker, the user and the editor did
    effects    what somebody else now has to do: ask the worker, show, tell, stop, apply

What leads where is in `session.py`; here nothing is decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from frostline.core.barrier import NO_FINDINGS, Commit, Findings, Refusal, Refused
from frostline.core.partial import Scope
from frostline.core.provisional import Draft
from frostline.core.regions import Regions
from frostline.core.text import Document, Span, TextEdit


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
        return self in ENDS


ENDS = frozenset({State.COMMITTED, State.REFUSED, State.CANCELLED})


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
class Sent:
    """The request left, and shows the model this stretch of the document."""

    window: Span


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
    """The document has a new version, by these edits, each in the text that the last one left."""

    document: Document
    edits: tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class Closed:
    """The document was closed."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The user, or the wish itself, wants the draft or a part of it in the file.

    Attributes:
        hole: which hole the part is of; None for all, or for the first that has one.
        findings: what a parser, the disk and the settings say of the result.
        by_request: a user asked, and so approves what is risky.
        anyway: the user wants it although it breaks the syntax.
        key: the client's name for this accept; the same key gives the same answer.
    """

    scope: Scope = Scope.ALL
    hole: int | None = None
    findings: Findings = NO_FINDINGS
    by_request: bool = True
    anyway: bool = False
    key: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """The editor says that it made the edit; or, with `done` False, that it would not."""

    done: bool = True


@dataclass(frozen=True, slots=True)
class Rejected:
    """The user does not want the draft."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A newer request for the same document took its place."""


@dataclass(frozen=True, slots=True)
class PinnedDown:
    """The user froze a span of a hole's draft (code points); the rest is to be denoised again."""

    hole: int
    span: Span


@dataclass(frozen=True, slots=True)
class Refined:
    """The user wants the open part again, in another way."""

    wish: Wish


@dataclass(frozen=True, slots=True)
class WentBack:
    """The user wants an earlier draft of the session; 1 is the one before."""

    by: int = 1


Event = (
    Begun
    | Sent
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
    | WentBack
)


# --- effects ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the worker to denoise the gaps of `regions`; a run still going is to be stopped first.

    Attributes:
        attempt: counts the runs of this session.
        again: the same gap was denoised before, so the draft has to come out different.
        calm: the user is typing; wait for a pause first.
    """

    regions: Regions
    wish: Wish
    attempt: int
    again: bool = False
    calm: bool = False


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

    result: Commit | Refused


@dataclass(frozen=True, slots=True)
class Follow:
    """Begin the next block in a session of its own, and `later` after it; all in the text as it is now."""

    block: Span
    later: tuple[Span, ...]
    wish: Wish


Effect = Ask | Show | Tell | Stop | Answer | Follow

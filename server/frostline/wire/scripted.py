"""A worker without a model: it plays steps from a script.

It has the client's face, so demos, tests and bug reports run the real server on it. A script is
canvases as text, one list for each gap: `░` is a slot still open, the last canvas is the final text.
What two canvases in a row have in common at the same place is shown as stable. A script for one gap
serves every gap of its request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from frostline.errors import BadSetting, WorkerLost, WorkerRefused
from frostline.wire import messages as wire

OPEN = "░"


@dataclass(frozen=True, slots=True)
class Script:
    """What to play for one request.

    Attributes:
        canvases: for each gap its text after each step; the last is final.
        converged: False ends the run as if its step budget had run out.
        lost_after: the worker dies after this many steps.
        failed: a refusal of the worker, as code and message.
    """

    canvases: tuple[tuple[str, ...], ...] = ()
    converged: bool = True
    lost_after: int | None = None
    failed: tuple[str, str] | None = None


class ScriptedWorker:
    """Plays one script after the other, the last one again and again.

    Attributes:
        requests: what was asked, in order.
        cancelled: runs that were cancelled, in order.
        gate: what each step waits for; a test sets it to hold a run between two steps.
    """

    def __init__(
        self,
        scripts: Sequence[Script] | Callable[[wire.Infill], Script],
        on_status: Callable[[wire.Status], None] = lambda _: None,
        pause: float = 0.0,
    ) -> None:
        self._scripts = scripts
        self._on_status = on_status
        self._pause = pause
        self.requests: list[wire.Infill] = []
        self.cancelled: list[str] = []
        self.steps_given = 0
        self.gate: Callable[[], object] | None = None
        self.status = wire.Status("ready", model="scripted", device="none", max_context=4096)
        self.sent = 0

    async def infill(self, request: wire.Infill) -> AsyncIterator[wire.Step | wire.Done]:
        """Yield the steps of the next script and its end."""
        self.sent += 1
        self.requests.append(request)
        script = self._script(request)
        if script.failed is not None:
            raise WorkerRefused(*script.failed)
        gaps = [part for part in request.segments if isinstance(part, wire.Gap)]
        canvases = script.canvases
        if len(canvases) == 1:
            canvases *= len(gaps)
        if len(gaps) != len(canvases):
            raise WorkerRefused(
                "script", f"the script has {len(script.canvases)} gaps, not {len(gaps)}"
            )
        count = max(map(len, canvases), default=0)
        ended = False
        try:
            for step in range(count):
                await asyncio.sleep(self._pause)
                if self.gate is not None:
                    await self.gate()  # type: ignore[misc]
                if script.lost_after == step:
                    raise WorkerLost("the model worker stopped; ask again")
                if request.id in self.cancelled:
                    figures = wire.Figures(steps=step, forwards=step)
                    ended = True
                    yield wire.Done(request.id, "cancelled", figures=figures)
                    return
                drafts = tuple(
                    _draft(gap.id, texts, step) for gap, texts in zip(gaps, canvases, strict=True)
                )
                self.steps_given += 1
                yield wire.Step(request.id, step + 1, count, drafts)
            ended = True
            yield wire.Done(
                request.id,
                "converged" if script.converged else "budget",
                tuple(
                    wire.GapText(gap.id, texts[-1], OPEN not in texts[-1], 0.9)
                    for gap, texts in zip(gaps, canvases, strict=True)
                ),
                wire.Figures(steps=count, forwards=count, regret=0.0),
            )
        finally:
            if not ended:
                self.cancel(request.id)

    def _script(self, request: wire.Infill) -> Script:
        if callable(self._scripts):
            return self._scripts(request)
        return self._scripts[min(len(self.requests), len(self._scripts)) - 1]

    async def score(self, request: wire.Score) -> wire.Scored:
        """Return a likelihood of zero nats for every gap."""
        gaps = [part for part in request.segments if isinstance(part, wire.Gap)]
        return wire.Scored(request.id, (0.0,) * len(gaps), (1,) * len(gaps))

    async def load(self) -> None:
        """Do nothing: there is no model."""
        self.sent += 1
        self._on_status(self.status)

    async def unload(self) -> None:
        """Do nothing: there is no model."""

    def cancel(self, run: str) -> None:
        """Remember that the run was cancelled."""
        if run not in self.cancelled:
            self.cancelled.append(run)

    async def close(self) -> None:
        """Do nothing: there is no process."""


def _draft(gap: int, canvases: Sequence[str], step: int) -> wire.GapDraft:
    step = min(step, len(canvases) - 1)
    now = canvases[step]
    before = canvases[step - 1] if step else ""
    last = step == len(canvases) - 1
    pieces: list[wire.Piece] = []
    for place, letter in enumerate(now):
        same = last or before[place : place + 1] == letter
        state: wire.PieceState = "open" if letter == OPEN else "stable" if same else "draft"
        if pieces and pieces[-1].state == state:
            pieces[-1] = wire.Piece(pieces[-1].text + letter, state, pieces[-1].confidence)
        else:
            pieces.append(wire.Piece(letter, state, 0.0 if letter == OPEN else 0.9))
    return wire.GapDraft(gap, tuple(pieces))


Canvases = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class Recording(msgspec.Struct, frozen=True):
    """A script as a JSON file has it.

    Attributes:
        runs: for each request, for each gap, its canvases.
        pause_ms: between two steps; the default is a pace that an eye can follow.
        lost_after: the worker dies after this many steps of each run; None for never.
    """

    runs: Annotated[tuple[tuple[Canvases, ...], ...], msgspec.Meta(min_length=1)]
    pause_ms: float = 150.0
    lost_after: int | None = None


def read_script(path: Path) -> Recording:
    """Return the script in a JSON file.

    Raises:
        BadSetting: the file is not there or holds something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Recording)
    except (OSError, msgspec.MsgspecError) as error:
        raise BadSetting(f"{path} is no script of steps: {error}") from error

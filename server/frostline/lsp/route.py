"""Two models behind one face: what the first says it cannot do, the peer is asked for.

Nothing is guessed: the first model is asked, and only a refusal that speaks of the model itself sends
the same request on. What it answered is told with the peer's name, so nobody wonders whose text it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

from frostline.errors import WorkerRefused
from frostline.wire import messages as wire
from frostline.wire.client import WorkerFace

# Refusals that say what a model cannot do, and another may.
CANNOT = frozenset({"no-instruction", "too-long", "nothing-fits"})


class Routed:
    """A worker's face over two of them. Its status is the first one's.

    Args:
        first: asked for everything.
        peer: asked for what the first cannot do.
        name: what the peer is called.
        say: told a sentence when a request goes to the peer.
    """

    def __init__(
        self, first: WorkerFace, peer: WorkerFace, name: str, say: Callable[[str], None]
    ) -> None:
        self._first, self._peer, self._name, self._say = first, peer, name, say

    @property
    def status(self) -> wire.Status:
        return self._first.status

    @property
    def sent(self) -> int:
        return self._first.sent + self._peer.sent

    async def infill(self, request: wire.Infill) -> AsyncIterator[wire.Step | wire.Done]:
        """Yield the steps of a run and then its end, from the model that can do it.

        Raises:
            WorkerLost: a worker ended or could not be started.
            WorkerRefused: neither can, with what both say.
        """
        try:
            async with aclosing(self._first.infill(request)) as steps:  # type: ignore[type-var]
                async for message in steps:
                    yield message
            return
        except WorkerRefused as error:
            if error.code not in CANNOT:
                raise
            refused = error
        self._say(f"{refused}; so {self._name} is asked")
        try:
            async with aclosing(self._peer.infill(request)) as steps:  # type: ignore[type-var]
                async for message in steps:
                    yield message
        except WorkerRefused as error:
            raise WorkerRefused(refused.code, f"{refused}; asked in its place: {error}") from error

    async def score(self, request: wire.Score) -> wire.Scored:
        """Return how likely the first model finds the gaps' old text."""
        return await self._first.score(request)

    async def load(self) -> None:
        """Have the first model loaded; the peer is when it is first needed."""
        await self._first.load()

    async def unload(self) -> None:
        """Have the memory of both given back."""
        await self._first.unload()
        await self._peer.unload()

    def cancel(self, run: str) -> None:
        """Stop a run before its next step, whoever has it."""
        self._first.cancel(run)
        self._peer.cancel(run)

    async def close(self) -> None:
        """Let go of both workers."""
        await self._first.close()
        await self._peer.close()

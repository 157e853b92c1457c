"""A worker in this process behind a real socket, clients by hand, and an engine that can be held."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from torch import Tensor

from frostline.models.backend import MaskedBackend
from frostline.wire import framing
from frostline.wire import messages as wire
from frostline.wire.address import Address, read_port
from frostline.worker.engine import Engine
from frostline.worker.main import Options, Worker
from frostline.worker.work import Steps, Work

M = TypeVar("M", bound=wire.Message)


class Held(Engine):
    """An engine whose steps wait until they are let go.

    Attributes:
        taken: whose step was taken, in order.
    """

    def __init__(self, backend: MaskedBackend) -> None:
        super().__init__(backend)
        self.taken: list[str] = []
        self._begun = threading.Semaphore(0)
        self._turns = threading.Semaphore(0)

    def begin(self, request: wire.Infill | wire.Score) -> Work:
        work = super().begin(request)
        work.steps = self._held(work.steps, request.id)
        return work

    def _held(self, steps: Steps, name: str) -> Steps:
        seen: list[Tensor] | None = None
        while True:
            came = next(steps) if seen is None else steps.send(seen)
            if isinstance(came, wire.Message):
                self.taken.append(name)
                self._begun.release()
                assert self._turns.acquire(timeout=60)
                yield came
                seen = None
            else:
                seen = yield came

    async def begun(self) -> None:
        """Wait until one more step is under way."""
        assert await asyncio.to_thread(self._begun.acquire, timeout=60)

    def let_go(self, steps: int = 1) -> None:
        """Let this many steps end."""
        self._turns.release(steps)


class Peer:
    """A client by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.incoming = framing.server_side()
        self.heard: list[wire.ToServer] = []

    def send(self, *messages: wire.Message) -> None:
        for message in messages:
            self.writer.write(framing.frame(message))

    async def next(self, kind: type[M], **fields: Any) -> M:
        """Return the next message of a kind, with these fields; the ones before it are dropped."""
        while True:
            while self.heard:
                message = self.heard.pop(0)
                if isinstance(message, kind) and all(
                    getattr(message, name) == value for name, value in fields.items()
                ):
                    return message
            data = await self.reader.read(1 << 16)
            assert data, f"the worker hung up before any {kind.__name__} {fields}"
            self.heard += self.incoming.feed(data)

    async def rest(self) -> list[wire.ToServer]:
        """Return what comes until the worker hangs up."""
        while data := await self.reader.read(1 << 16):
            self.heard += self.incoming.feed(data)
        return self.heard

    async def leave(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@asynccontextmanager
async def calling(address: Address, hello: wire.Message | None = None) -> AsyncIterator[Peer]:
    """Give a client; without a `hello` of its own it is greeted properly."""
    if address.tcp:
        port, token = read_port(address.path)
        peer = Peer(*await asyncio.open_connection("127.0.0.1", port))
        greeting = wire.Hello(token=token)
    else:
        peer = Peer(*await asyncio.open_unix_connection(address.path))
        greeting = wire.Hello()
    try:
        peer.send(hello or greeting)
        if hello is None:
            await peer.next(wire.Hello)
        yield peer
    finally:
        await peer.leave()


@asynccontextmanager
async def serving(address: Address, loader: Any, idle_s: float = 900.0) -> AsyncIterator[Worker]:
    """Give a worker that listens, and end it."""
    announced = asyncio.Event()
    worker = Worker(Options("tiny", idle_s=idle_s), loader)
    task = asyncio.create_task(worker.serve(address, announced.set))
    await asyncio.wait(
        [task, asyncio.create_task(announced.wait())], return_when=asyncio.FIRST_COMPLETED
    )
    try:
        yield worker
    finally:
        worker.stop()
        await task


def infill(name: str, *, interactive: bool = True, room: int = 8) -> wire.Infill:
    """Return a request that takes as many steps as it has room, one slot each."""
    segments = (wire.Text("x = "), wire.Gap(0, room=room, multiline=False), wire.Text("\n"))
    decoding = wire.Decoding(threshold=None)
    return wire.Infill(name, segments, decoding=decoding, interactive=interactive)

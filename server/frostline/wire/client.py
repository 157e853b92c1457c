"""The server's end of the wire: starts the worker, watches it, streams steps, cancels.

Nothing is sent before somebody asks for something. A worker that dies fails what was under way with
WorkerLost; the next request starts a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from frostline import __version__
from frostline.config import Settings
from frostline.errors import WireError, WorkerLost, WorkerRefused
from frostline.wire import framing
from frostline.wire import messages as wire
from frostline.wire.address import Address, address_for, read_port

logger = logging.getLogger(__name__)

START_S = 30.0
StatusHandler = Callable[[wire.Status], None]


class WorkerFace(Protocol):
    """What the server needs of a worker; `WorkerClient` and `ScriptedWorker` both have it."""

    status: wire.Status
    sent: int

    def infill(self, request: wire.Infill) -> AsyncIterator[wire.Step | wire.Done]:
        """Yield the steps of a run and then its end."""

    async def score(self, request: wire.Score) -> wire.Scored:
        """Return how likely the model finds the gaps' old text."""

    async def load(self) -> None:
        """Have the model loaded."""

    async def unload(self) -> None:
        """Have the model's memory given back."""

    def cancel(self, run: str) -> None:
        """Stop a run before its next step."""

    async def close(self) -> None:
        """Let go of the worker, which may go on for others."""


class WorkerClient:
    """One connection to the worker of some settings, opened on demand.

    Attributes:
        status: what was last heard of the worker.
        sent: messages sent so far; none while nobody asks.
    """

    def __init__(self, settings: Settings, on_status: StatusHandler = lambda _: None) -> None:
        self._settings = settings
        self._on_status = on_status
        self._address = address_for(settings)
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._waiting: dict[str, asyncio.Queue[wire.Message | Exception]] = {}
        self.status = wire.Status("off", model=settings.model)
        self.sent = 0

    @property
    def address(self) -> Address:
        """Where the worker listens."""
        return self._address

    async def infill(self, request: wire.Infill) -> AsyncIterator[wire.Step | wire.Done]:
        """Yield the steps of a run and then its end; a run that is let go early is cancelled.

        Raises:
            WorkerLost: the worker ended or could not be started.
            WorkerRefused: it could not do what was asked.
        """
        queue: asyncio.Queue[wire.Message | Exception] = asyncio.Queue()
        self._waiting[request.id] = queue
        ended = False
        try:
            await self._send(request)
            while not ended:
                message = await queue.get()
                ended = not isinstance(message, wire.Step)
                yield _wanted(message)
        finally:
            self._waiting.pop(request.id, None)
            if not ended:
                self.cancel(request.id)

    async def score(self, request: wire.Score) -> wire.Scored:
        """Return how likely the model finds the gaps' old text."""
        queue: asyncio.Queue[wire.Message | Exception] = asyncio.Queue()
        self._waiting[request.id] = queue
        try:
            await self._send(request)
            message = await queue.get()
        finally:
            self._waiting.pop(request.id, None)
        if isinstance(message, wire.Scored):
            return message
        _wanted(message)
        raise WireError("the worker answered a score with something else")

    async def load(self) -> None:
        """Have the model loaded; returns when it was asked for, `status` says the rest."""
        await self._send(wire.Load())

    async def unload(self) -> None:
        """Have the model's memory given back, if there is a worker."""
        if self._writer is not None:
            await self._send(wire.Unload())

    def cancel(self, run: str) -> None:
        """Stop a run before its next step."""
        if self._writer is not None and not self._writer.is_closing():
            self.sent += 1
            self._writer.write(framing.frame(wire.Cancel(run)))

    async def close(self) -> None:
        """Let go of the worker."""
        writer, self._writer = self._writer, None
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading
            self._reading = None
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _send(self, message: wire.Message) -> None:
        data = framing.frame(message)
        writer = await self._connected()
        self.sent += 1
        try:
            writer.write(data)
            await writer.drain()
        except OSError as error:
            raise WorkerLost("the model worker stopped while it was asked; ask again") from error

    # --- connection -----------------------------------------------------------------------------

    async def _connected(self) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._writer is None or self._writer.is_closing():
                self._heard(replace_state(self.status, "starting"))
                try:
                    reader, self._writer = await self._open()
                except (WorkerLost, WorkerRefused) as error:
                    self._heard(wire.Status("off", model=self._settings.model, message=str(error)))
                    raise
                self._reading = asyncio.create_task(self._read(reader, self._writer))
            return self._writer

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection to the worker, which is started if there is none."""
        with contextlib.suppress(OSError, WorkerLost):
            return await self._dial()
        process = start_worker(self._settings, self._address)
        pauses = itertools.chain([0.02] * 25, itertools.repeat(0.1))
        deadline = asyncio.get_running_loop().time() + START_S
        while asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(next(pauses))
            with contextlib.suppress(OSError, WorkerLost):
                return await self._dial()
            if process.poll() not in (None, 0):
                break
        raise WorkerLost(f"the model worker did not start; see {self._address.log}")

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._address.tcp:
            port, token = read_port(self._address.path)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        else:
            token = ""
            reader, writer = await asyncio.open_unix_connection(self._address.path)
        writer.write(framing.frame(wire.Hello(token=token, version=__version__)))
        return reader, writer

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming = framing.server_side()
        reason = "the model worker stopped; ask again and it will be started anew"
        try:
            while data := await reader.read(1 << 16):
                for message in incoming.feed(data):
                    self._take(message)
        except (OSError, WireError) as error:
            reason = f"the connection to the model worker broke ({error}); ask again"
        finally:
            writer.close()
            if self._writer is writer:
                self._writer = None
                self._lost(reason)

    def _lost(self, reason: str) -> None:
        for queue in self._waiting.values():
            queue.put_nowait(WorkerLost(reason))
        self._heard(replace_state(self.status, "lost"))

    def _take(self, message: wire.ToServer) -> None:
        match message:
            case wire.Status():
                self._heard(message)
            case wire.Failed(id="", message=text):
                for queue in self._waiting.values():
                    queue.put_nowait(WorkerRefused("wire", text))
            case wire.Step() | wire.Done() | wire.Scored() | wire.Failed():
                # Steps of a run that nobody waits for any more arrive late; they are no news.
                waiting = self._waiting.get(message.id)
                if waiting is not None:
                    waiting.put_nowait(message)
            case wire.Hello():
                pass

    def _heard(self, status: wire.Status) -> None:
        self.status = status
        self._on_status(status)


def replace_state(status: wire.Status, state: wire.WorkerState) -> wire.Status:
    """Return the status in another state."""
    return wire.Status(state, model=status.model, device=status.device)


def _wanted(message: wire.Message | Exception) -> wire.Step | wire.Done:
    if isinstance(message, Exception):
        raise message
    if isinstance(message, wire.Failed):
        raise WorkerRefused(message.code, message.message)
    if isinstance(message, wire.Step | wire.Done):
        return message
    raise WireError("the worker answered a run with something else")


def start_worker(settings: Settings, address: Address) -> subprocess.Popen[bytes]:
    """Start the worker process, on its own: it outlives this process and serves others.

    Raises:
        WorkerRefused: the model stack is not installed here.
    """
    missing = [name for name in ("torch", "transformers", "safetensors") if not _there(name)]
    if missing:
        raise WorkerRefused(
            "install",
            f"no model can be run here: {', '.join(missing)} not installed; "
            "run: pip install 'frostline[local]'",
        )
    command = [sys.executable, "-m", "frostline", "worker"]
    command += ["--tcp" if address.tcp else "--socket", str(address.path)]
    command += ["--model", settings.model, "--device", settings.device]
    command += ["--threads", str(settings.threads), "--idle", str(settings.idle_s)]
    descriptor = os.open(address.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)


def _there(name: str) -> bool:
    return importlib.util.find_spec(name) is not None

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
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property
from typing import Protocol

from frostline import __version__
from frostline.config import Settings, model_path
from frostline.errors import FrostlineError, WireError, WorkerLost, WorkerRefused
from frostline.wire import framing
from frostline.wire import messages as wire
from frostline.wire.address import Address, address_for, read_port

logger = logging.getLogger(__name__)

START_S = 30.0
# One that is busy loading answers late, but it answers.
GREET_S = 10.0
_GONE = "the model worker stopped; ask again and it will be started anew"
_LET_GO = "the model worker was let go; ask again"
_started: list[subprocess.Popen[bytes]] = []
StatusHandler = Callable[[wire.Status], None]


class WorkerFace(Protocol):
    """What the server needs of a worker; `WorkerClient` and `ScriptedWorker` both have it."""

    @property
    def status(self) -> wire.Status:
        """What was last heard of the worker."""

    @property
    def sent(self) -> int:
        """Messages sent so far; none while nobody asks."""

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


class _Link:
    """One connection, and who waits for what over it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.incoming = framing.server_side()
        self.waiting: dict[str, asyncio.Queue[wire.ToServer | Exception]] = {}

    @property
    def open(self) -> bool:
        return not self.writer.is_closing()

    def fail(self, error: Exception) -> None:
        """Have everybody who waits hear of it."""
        for queue in self.waiting.values():
            queue.put_nowait(error)


class WorkerClient:
    """One connection to the worker of some settings, opened on demand.

    Attributes:
        status: what was last heard of the worker.
        sent: messages sent so far; none while nobody asks.
    """

    def __init__(self, settings: Settings, on_status: StatusHandler = lambda _: None) -> None:
        self._settings = replace(settings, model=model_path(settings.model))
        self._on_status = on_status
        self._link: _Link | None = None
        self._reading: asyncio.Task[None] | None = None
        self._connecting: asyncio.Task[_Link] | None = None
        self.status = wire.Status("off", model=settings.model)
        self.sent = 0

    @cached_property
    def address(self) -> Address:
        """Where the worker listens.

        Raises:
            WorkerLost: there is no private place for its socket.
        """
        return address_for(self._settings)

    async def infill(self, request: wire.Infill) -> AsyncIterator[wire.Step | wire.Done]:
        """Yield the steps of a run and then its end; a run that is let go early is cancelled.

        Raises:
            WorkerLost: the worker ended or could not be started.
            WorkerRefused: it could not do what was asked.
        """
        async with aclosing(self._answers(request)) as answers:
            async for message in answers:
                if not isinstance(message, wire.Step | wire.Done):
                    raise WireError("the worker answered a run with something else")
                yield message

    async def score(self, request: wire.Score) -> wire.Scored:
        """Return how likely the model finds the gaps' old text.

        Raises:
            WorkerLost: the worker ended or could not be started.
            WorkerRefused: it could not do what was asked.
        """
        async with aclosing(self._answers(request)) as answers:
            message = await anext(answers)
        if not isinstance(message, wire.Scored):
            raise WireError("the worker answered a score with something else")
        return message

    async def load(self) -> None:
        """Have the model loaded; returns when it was asked for, `status` says the rest."""
        await self._send(await self._connected(), framing.frame(wire.Load()))

    async def unload(self) -> None:
        """Have the model's memory given back, if there is a worker."""
        if self._link is not None:
            await self._send(self._link, framing.frame(wire.Unload()))

    def cancel(self, run: str) -> None:
        """Stop a run before its next step."""
        if self._link is not None:
            self._cancel(self._link, run)

    async def close(self) -> None:
        """Let go of the worker; what was under way over this connection is lost."""
        link = self._link
        for task in (self._connecting, self._reading):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        if link is not None:
            with contextlib.suppress(OSError):
                await link.writer.wait_closed()

    # --- asking ---------------------------------------------------------------------------------

    async def _answers(self, request: wire.Infill | wire.Score) -> AsyncGenerator[wire.ToServer]:
        """Yield what the worker has to say to a request, up to its end."""
        data = framing.frame(request)
        link = await self._connected()
        queue = link.waiting[request.id] = asyncio.Queue[wire.ToServer | Exception]()
        ended = False
        try:
            await self._send(link, data)
            while not ended:
                message = await queue.get()
                ended = not isinstance(message, wire.Step)
                if isinstance(message, Exception):
                    raise message
                if isinstance(message, wire.Failed):
                    raise WorkerRefused(message.code, message.message)
                yield message
        finally:
            if link.waiting.get(request.id) is queue:
                del link.waiting[request.id]
            if not ended:
                self._cancel(link, request.id)

    async def _send(self, link: _Link, data: bytes) -> None:
        if not link.open:
            raise WorkerLost(_GONE)
        self.sent += 1
        link.writer.write(data)
        try:
            await link.writer.drain()
        except OSError as error:
            raise WorkerLost(_GONE) from error

    def _cancel(self, link: _Link, run: str) -> None:
        if link.open:
            self.sent += 1
            link.writer.write(framing.frame(wire.Cancel(run)))

    # --- connection -----------------------------------------------------------------------------

    async def _connected(self) -> _Link:
        if self._link is not None and self._link.open:
            return self._link
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            # Whoever waited for it may have left: then nobody is there to hear what went wrong.
            self._connecting.add_done_callback(lambda task: task.cancelled() or task.exception())
        connecting = self._connecting
        try:
            # A request that is let go while the worker starts does not end the start.
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            if connecting.cancelled():
                raise WorkerLost(_LET_GO) from None
            raise

    async def _connect(self) -> _Link:
        try:
            self._heard(replace_state(self.status, "starting"))
            link = await self._open()
        except FrostlineError as error:
            self._heard(wire.Status("off", model=self._settings.model, message=str(error)))
            raise
        finally:
            self._connecting = None
        self._link = link
        self._reading = asyncio.create_task(self._read(link))
        return link

    async def _open(self) -> _Link:
        """Return a connection to the worker, which is started if there is none."""
        process: subprocess.Popen[bytes] | None = None
        pauses = itertools.chain([0.02] * 25, itertools.repeat(0.1))
        deadline = asyncio.get_running_loop().time() + START_S
        while asyncio.get_running_loop().time() < deadline:
            with contextlib.suppress(OSError, WorkerLost, WireError):
                return await self._dial()
            if process is None:
                process = start_worker(self._settings, self.address)
            elif process.poll():
                raise WorkerLost(f"the model worker did not start: {_last_words(self.address)}")
            elif process.returncode == 0:
                # It made way for another one, which either answers now or was about to leave.
                process = None
            await asyncio.sleep(next(pauses))
        raise WorkerLost(f"the model worker does not answer; see {self.address.log}")

    async def _dial(self) -> _Link:
        """Return a connection to a worker that has greeted.

        Raises:
            WorkerLost, WireError, OSError: there is none, or it is not ours.
            WorkerRefused: there is one that will not talk to us.
        """
        token = ""
        if self.address.tcp:
            port, token = read_port(self.address.path)
            link = _Link(*await asyncio.open_connection("127.0.0.1", port))
        else:
            link = _Link(*await asyncio.open_unix_connection(self.address.path))
        try:
            link.writer.write(framing.frame(wire.Hello(token=token, version=__version__)))
            async with asyncio.timeout(GREET_S):
                await self._greeted(link)
        except BaseException:
            link.writer.close()
            raise
        return link

    async def _greeted(self, link: _Link) -> None:
        messages: list[wire.ToServer] = []
        while not messages:
            data = await link.reader.read(1 << 16)
            if not data:
                raise WorkerLost(_GONE)
            messages = link.incoming.feed(data)
        hello, *more = messages
        if isinstance(hello, wire.Failed):
            raise WorkerRefused(hello.code, hello.message)
        if not isinstance(hello, wire.Hello) or hello.protocol != wire.PROTOCOL:
            raise WorkerRefused(
                "wire", f"the worker at {self.address.path} is of another version; end it"
            )
        for message in more:
            self._take(link, message)

    async def _read(self, link: _Link) -> None:
        reason, lost = _LET_GO, False
        try:
            while data := await link.reader.read(1 << 16):
                for message in link.incoming.feed(data):
                    self._take(link, message)
            reason, lost = _GONE, True
        except (OSError, WireError) as error:
            reason, lost = f"the connection to the model worker broke ({error}); ask again", True
        finally:
            link.writer.close()
            link.fail(WorkerLost(reason))
            if self._link is link:
                self._link = None
                if lost:
                    self._heard(replace_state(self.status, "lost"))

    def _take(self, link: _Link, message: wire.ToServer) -> None:
        match message:
            case wire.Status():
                self._heard(message)
            case wire.Failed(id="", code=code, message=text):
                link.fail(WorkerRefused(code, text))
            case wire.Step() | wire.Done() | wire.Scored() | wire.Failed():
                # Steps of a run that nobody waits for any more arrive late; they are no news.
                waiting = link.waiting.get(message.id)
                if waiting is not None:
                    waiting.put_nowait(message)
            case wire.Hello():
                pass

    def _heard(self, status: wire.Status) -> None:
        self.status = status
        try:
            self._on_status(status)
        except Exception:
            # A listener's bug must not look like a lost worker.
            logger.exception("telling that the worker is %s failed", status.state)


def replace_state(status: wire.Status, state: wire.WorkerState) -> wire.Status:
    """Return the status in another state."""
    return wire.Status(state, model=status.model, device=status.device)


def start_worker(settings: Settings, address: Address) -> subprocess.Popen[bytes]:
    """Start the worker process, on its own: it outlives this process and serves others.

    Raises:
        WorkerRefused: the model stack is not installed here.
        WorkerLost: the system does not let it start.
    """
    missing = [name for name in ("torch", "transformers", "safetensors") if not _there(name)]
    if missing:
        raise WorkerRefused(
            "install",
            f"no model can be run here: {', '.join(missing)} not installed; "
            "run: pip install '.[local]' in Frostline's sources",
        )
    # -P: what lies in the working folder, which may be anybody's repository, is never imported.
    command = [sys.executable, "-P", "-m", "frostline", "worker"]
    command += ["--tcp" if address.tcp else "--socket", str(address.path)]
    command += ["--model", settings.model, "--device", settings.device]
    command += ["--threads", str(settings.threads), "--idle", str(settings.idle_s)]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    try:
        with open(address.log, "ab", opener=lambda path, _: os.open(path, flags, 0o600)) as log:
            process = subprocess.Popen(
                command,
                cwd=address.path.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise WorkerLost(f"the model worker could not be started: {error}") from error
    # Ended ones are waited for here, or they would stay as zombies while this process lives.
    _started[:] = [one for one in _started if one.poll() is None] + [process]
    return process


def _last_words(address: Address) -> str:
    try:
        lines = address.log.read_text(errors="replace").split("\n")
    except OSError:
        lines = []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    return f"{last[:300]} (see {address.log})"


def _there(name: str) -> bool:
    return importlib.util.find_spec(name) is not None

"""The worker process: reads a message, runs it, sends steps.

All talk is on one event loop and all computing on one thread beside it, one denoise step at a time.
Between two steps the loop has seen every message that came in, so a cancel costs at most the step
that is under way. Loading is a state of its own: it belongs to no request, and no cancel ends it.

torch is first imported when a model is loaded, so a worker answers at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import secrets
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

import psutil

from frostline import __version__
from frostline.errors import FrostlineError, WireError, WorkerRefused
from frostline.wire import framing
from frostline.wire import messages as wire
from frostline.wire.address import Address, write_private

if TYPE_CHECKING:
    from frostline.worker.engine import Engine
    from frostline.worker.work import Came, Work

logger = logging.getLogger(__name__)

# How long a worker without any editor stays, when its own idle time is longer.
LINGER_S = 120.0
# Runs that share a pass of the model; more than that wait for their turn, and each gets slower.
MOST_AT_ONCE = 16
Loader = Callable[["Options", Callable[[float], None]], "Engine"]


@dataclass(frozen=True, slots=True)
class Options:
    """What a worker is started with; the same names as in Settings."""

    model: str
    device: str = "auto"
    threads: int = 0
    idle_s: float = 900.0


@dataclass(eq=False, slots=True)
class Talk:
    """One connection."""

    writer: asyncio.StreamWriter

    def send(self, message: wire.Message) -> None:
        """Send a message; one that has left hears nothing."""
        if not self.writer.is_closing():
            self.writer.write(framing.frame(message))


@dataclass(eq=False, slots=True)
class Run:
    """One request on its way.

    Attributes:
        work: what the engine makes of it, once it has had its first turn.
        taken: steps it has had.
        busy: whether one is under way.
    """

    talk: Talk
    request: wire.Infill | wire.Score
    work: Work | None = None
    taken: int = 0
    cancelled: bool = False
    busy: bool = False

    @property
    def interactive(self) -> bool:
        return isinstance(self.request, wire.Score) or self.request.interactive

    @property
    def turn(self) -> int:
        return self.work.turn if self.work else 0


@dataclass(eq=False)
class Worker:
    """One model and everybody who asks for it."""

    options: Options
    loader: Loader = field(default_factory=lambda: _load_engine)
    talks: set[Talk] = field(default_factory=set)
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._engine: Engine | None = None
        self._token = ""
        self._loading: asyncio.Task[None] | None = None
        self._state: wire.WorkerState = "off"
        self._progress: float | None = None
        self._message = ""
        self._wanted = asyncio.Event()
        self._stopped = asyncio.Event()
        self._used = time.monotonic()
        self._compute = ThreadPoolExecutor(1, thread_name_prefix="compute")

    async def serve(self, address: Address, announced: Callable[[], None] = lambda: None) -> None:
        """Listen at `address` until nobody has been there for a while."""
        with _only_one(address) as alone:
            if not alone:
                logger.info("another worker already listens at %s", address.path)
                return
            server, self._token = await _listen(address, self._talk)
            announced()
            parts = (self._work(), self._watch_idle(), self._stopped.wait())
            tasks = [asyncio.create_task(part) for part in parts]
            try:
                # The first to end is the wish to stop, or a bug that a worker must not outlive.
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                done.pop().result()
            finally:
                self.stop()
                for task in (*tasks, self._loading):
                    if task is not None:
                        task.cancel()
                server.close()
                for talk in list(self.talks):
                    talk.writer.close()
                self._compute.shutdown(wait=False, cancel_futures=True)
                with contextlib.suppress(OSError):
                    address.path.unlink()

    def stop(self) -> None:
        """Have `serve` end; who comes from now on is sent away, and finds a new worker."""
        self._stopped.set()

    # --- talk -----------------------------------------------------------------------------------

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = Talk(writer)
        incoming = framing.worker_side()
        greeted = False
        try:
            while data := await reader.read(1 << 16):
                for message in incoming.feed(data):
                    if self._stopped.is_set():
                        return
                    if greeted:
                        self._take(talk, message)
                    else:
                        self._greet(talk, message)
                        greeted = True
        except WireError as error:
            talk.send(wire.Failed("", "wire", str(error)))
        except OSError:
            pass
        finally:
            writer.close()
            self.talks.discard(talk)
            self._used = time.monotonic()
            for run in self.runs:
                run.cancelled = run.cancelled or run.talk is talk

    def _greet(self, talk: Talk, message: wire.ToWorker) -> None:
        if not isinstance(message, wire.Hello):
            raise WireError("the first message has to be Hello")
        if message.protocol != wire.PROTOCOL:
            raise WireError(
                f"this worker speaks protocol {wire.PROTOCOL}, not {message.protocol}; "
                "restart the editor so that both are of one version"
            )
        if not secrets.compare_digest(message.token.encode(), self._token.encode()):
            raise WireError("the token is wrong")
        self.talks.add(talk)
        talk.send(wire.Hello(version=__version__))
        talk.send(self._status())

    def _take(self, talk: Talk, message: wire.ToWorker) -> None:
        self._used = time.monotonic()
        match message:
            case wire.Load():
                self._load()
            case wire.Infill() | wire.Score():
                self.runs.append(Run(talk, message))
                self._load()
                self._wanted.set()
            case wire.Cancel(id=name):
                for run in self.runs:
                    run.cancelled = run.cancelled or (run.talk is talk and run.request.id == name)
                # A run that waits for the model can be let go at once.
                self._drop_cancelled()
            case wire.AskStatus():
                talk.send(self._status())
            case wire.Unload():
                self._unload()
            case wire.Hello():
                pass

    def _status(self) -> wire.Status:
        spec = self._engine.backend.spec if self._engine else None
        return wire.Status(
            state="busy" if self._state == "ready" and self.runs else self._state,
            model=spec.name if spec else self.options.model,
            device=str(self._engine.backend.device) if self._engine else self.options.device,
            progress=self._progress,
            memory=psutil.Process().memory_info().rss,
            max_context=spec.max_context if spec else 0,
            language=spec.trained_on if spec else "",
            instruction=spec.instruction if spec else False,
            cannot=spec.cannot if spec else (),
            message=self._message,
        )

    def _tell_all(self) -> None:
        status = self._status()
        for talk in self.talks:
            talk.send(status)

    # --- the model ------------------------------------------------------------------------------

    def _load(self) -> None:
        if self._engine is None and self._loading is None:
            self._state, self._progress, self._message = "loading", 0.0, ""
            self._tell_all()
            self._loading = asyncio.create_task(self._load_now())

    async def _load_now(self) -> None:
        loop = asyncio.get_running_loop()

        def progress(share: float) -> None:
            loop.call_soon_threadsafe(self._progressed, share)

        try:
            self._engine = await loop.run_in_executor(
                self._compute, self.loader, self.options, progress
            )
            self._state, self._progress = "ready", None
        except Exception as error:
            # Also what is no FrostlineError: a model that cannot be loaded must not end the process.
            if not isinstance(error, FrostlineError):
                logger.exception("loading %s failed", self.options.model)
            self._state, self._progress = "off", None
            self._message = str(error) if isinstance(error, FrostlineError) else _brief(error)
            # The state first: whoever hears of the failure finds it off, and can ask for it again.
            failed, self.runs = self.runs, []
            self._tell_all()
            for run in failed:
                code = error.code if isinstance(error, WorkerRefused) else "model"
                run.talk.send(wire.Failed(run.request.id, code, self._message))
        finally:
            self._loading = None
            self._used = time.monotonic()
            self._tell_all()
            self._wanted.set()

    def _progressed(self, share: float) -> None:
        # Told in steps of a tenth: a bar needs no more, and a socket likes less.
        if self._state == "loading" and share - (self._progress or 0.0) >= 0.1:
            self._progress = round(share, 2)
            self._tell_all()

    def _unload(self) -> None:
        if self._engine is not None and not self.runs:
            self._engine = None
            _give_memory_back()
            self._state = "off"
            self._tell_all()

    async def _watch_idle(self) -> None:
        while True:
            await asyncio.sleep(max(min(self.options.idle_s, LINGER_S) / 4, 0.05))
            idle = time.monotonic() - self._used
            if self.runs or self._loading:
                continue
            if idle >= self.options.idle_s:
                self._unload()
            if not self.talks and idle >= min(self.options.idle_s, LINGER_S):
                self.stop()

    # --- computing ------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            await self._wanted.wait()
            self._drop_cancelled()
            if self._engine is None or not self.runs:
                self._wanted.clear()
                continue
            await self._advance(self._next(), self._engine)

    def _next(self) -> list[Run]:
        """Return the runs to take a step of, those first that have waited longest.

        Who has somebody waiting is never kept waiting for who has not.
        """
        waited = sorted(self.runs, key=lambda run: run.turn)
        interactive = [run for run in waited if run.interactive]
        return interactive[:MOST_AT_ONCE] or waited[:MOST_AT_ONCE]

    async def _advance(self, runs: list[Run], engine: Engine) -> None:
        loop = asyncio.get_running_loop()
        if any(run.work is None for run in runs):
            for run in runs:
                run.work = run.work or engine.begin(run.request)
            self._tell_all()
        for run in runs:
            run.busy = True
        works = [run.work for run in runs if run.work is not None]
        try:
            came = await loop.run_in_executor(self._compute, engine.advance, works)
        except Exception as error:
            # What several shared failed for all of them; the log has the rest.
            came = [error] * len(runs)
        # What came in during the step is read, handed to its connection, and acted upon.
        for _ in range(3):
            await asyncio.sleep(0)
        self._used = time.monotonic()
        for run, one in zip(runs, came, strict=True):
            run.busy = False
            self._tell(run, one)

    def _tell(self, run: Run, came: Came) -> None:
        """Pass on what a run came to."""
        if isinstance(came, WorkerRefused):
            came = wire.Failed(run.request.id, came.code, str(came))
        elif isinstance(came, Exception):
            # One request's bug is one request's answer; the log has the rest.
            logger.error("run %s failed", run.request.id, exc_info=came)
            came = wire.Failed(run.request.id, "bug", _brief(came))
        if came is None:
            return
        if isinstance(came, wire.Step):
            run.taken += 1
            if not run.cancelled:
                run.talk.send(came)
            return
        self._end(run, came)

    def _drop_cancelled(self) -> None:
        for run in [run for run in self.runs if run.cancelled]:
            if not run.busy:
                figures = wire.Figures(steps=run.taken, forwards=run.taken)
                self._end(run, wire.Done(run.request.id, "cancelled", figures=figures))

    def _end(self, run: Run, message: wire.Message) -> None:
        self.runs.remove(run)
        run.talk.send(message)
        if not self.runs:
            self._tell_all()


def _load_engine(options: Options, progress: Callable[[float], None]) -> Engine:
    """Return the engine. Imports torch, which takes seconds: only ever called on the compute thread."""
    from frostline.models import folder

    # What is wrong at first sight is said before those seconds.
    folder.read(folder.folder_of(options.model))
    import torch

    from frostline.models import registry
    from frostline.worker.engine import Engine

    if options.threads:
        torch.set_num_threads(options.threads)
    return Engine(registry.load(options.model, options.device, progress))


def _give_memory_back() -> None:
    """Return what a dropped model held to the system, which others may need it for."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def _brief(error: Exception) -> str:
    return f"the model failed with {type(error).__name__}; the worker's log has the details"


# --- listening ----------------------------------------------------------------------------------

_Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _listen(address: Address, handler: _Handler) -> tuple[asyncio.Server, str]:
    if address.tcp:
        token = secrets.token_hex(32)
        server = await asyncio.start_server(handler, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        write_private(address.path, json.dumps({"port": port, "token": token}))
        return server, token
    with contextlib.suppress(FileNotFoundError):
        address.path.unlink()
    # The mode is set before anybody can connect: the socket is born under this mask.
    mask = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(handler, address.path)
    finally:
        os.umask(mask)
    return server, ""


@contextlib.contextmanager
def _only_one(address: Address) -> Iterator[bool]:
    """Hold the lock of an address; False where another worker holds it."""
    with address.lock.open("w") as file:
        yield _locked(file)


def _locked(file: IO[str]) -> bool:
    try:
        import fcntl
    except ImportError:
        # Without file locks two workers may start at once; each has its own port, the last one's
        # file is found, and the other ends when nobody comes.
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def run(address: Address, options: Options) -> None:
    """Run a worker at `address` until it is no longer wanted."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # OpenMP threads wait for each other by spinning. Beside any other busy process that costs a
    # small model a factor of fifty (measured: 860 ms a step against 17 ms), and an editor's machine
    # is never idle. It is read when torch is first loaded, which is later than here.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    asyncio.run(_served(Worker(options), address))


async def _served(worker: Worker, address: Address) -> None:
    for name in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(name, worker.stop)
    await worker.serve(address)

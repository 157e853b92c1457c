"""Real worker processes: started when they are needed, shared, killed, and gone when nobody is there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from frostline.config import Settings
from frostline.errors import WorkerLost, WorkerRefused
from frostline.wire import messages as wire
from frostline.wire.client import WorkerClient
from wire.conftest import a_runtime, workers
from worker.peers import calling, infill

pytestmark = pytest.mark.e2e

# Slots, and so steps, of a run that is not over before something else happens.
LONG = 900


class Listener:
    """A client that remembers the states of its worker, and waits for one."""

    def __init__(self, settings: Settings) -> None:
        self.states: list[str] = []
        self._changed = asyncio.Event()
        self.client = WorkerClient(settings, self._heard)

    def _heard(self, status: wire.Status) -> None:
        self.states.append(status.state)
        self._changed.set()

    async def until(self, state: str) -> None:
        while self.client.status.state != state:
            self._changed.clear()
            await self._changed.wait()

    async def drafted(self, request: wire.Infill) -> list[Any]:
        async with aclosing(self.client.infill(request)) as messages:
            return [message async for message in messages]


@asynccontextmanager
async def listening(settings: Settings) -> AsyncIterator[Listener]:
    listener = Listener(settings)
    try:
        yield listener
    finally:
        await listener.client.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """A runtime directory whose worker several tests use: to start one takes seconds."""
    with pytest.MonkeyPatch.context() as monkeypatch, a_runtime(monkeypatch) as path:
        yield path


@pytest.fixture
def settings(folder: Path) -> Settings:
    return Settings(model=str(folder), device="cpu", threads=1)


async def the_worker(runtime: Path) -> psutil.Process:
    """Return the one worker there is; a second that was started makes way by itself."""
    while len(found := workers(runtime)) > 1:
        await asyncio.to_thread(psutil.wait_procs, found, timeout=0.05)
    return found[0]


async def ended(process: psutil.Process) -> None:
    await asyncio.to_thread(psutil.wait_procs, [process], timeout=60)
    assert not process.is_running()


def left_in(folder: Path) -> set[str]:
    return {path.suffix for path in folder.glob("*")}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_it_is_started_on_demand_and_a_cancel_does_not_end_its_load(
    runtime: Path, settings: Settings
) -> None:
    async with listening(settings) as one:
        assert workers(runtime) == []
        task = asyncio.create_task(one.drafted(infill("a")))
        await one.until("loading")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await one.until("ready")
        assert one.states[0] == "starting"
        assert {"lost", "busy"}.isdisjoint(one.states)
        assert mode(one.client.address.path) == 0o600
        assert mode(one.client.address.log) == 0o600
        assert mode(runtime) == 0o700


async def test_clients_that_come_at_once_share_one_process(
    shared: Path, settings: Settings
) -> None:
    async with listening(settings) as one, listening(settings) as two:
        first, second = await asyncio.gather(
            one.drafted(infill("same name", room=5)), two.drafted(infill("same name", room=3))
        )
        assert [type(message) for message in first] == [wire.Step] * 5 + [wire.Done]
        assert [type(message) for message in second] == [wire.Step] * 3 + [wire.Done]
        process = await the_worker(shared)
        # In a session of its own: it does not end with the terminal of the editor.
        assert os.getsid(process.pid) != os.getsid(0)


async def test_a_cancel_costs_at_most_the_step_under_way(shared: Path, settings: Settings) -> None:
    async with listening(settings) as one:
        await one.drafted(infill("so that it is there"))
        process = await the_worker(shared)
        for number in range(5):
            async with calling(one.client.address) as peer:
                peer.send(infill(f"run {number}", room=LONG))
                await peer.next(wire.Step)
                # While it stands still, all that it has said is in the socket.
                process.send_signal(signal.SIGSTOP)
                await asyncio.to_thread(os.waitpid, process.pid, os.WUNTRACED)
                with contextlib.suppress(TimeoutError):
                    while data := await asyncio.wait_for(peer.reader.read(1 << 16), 0.05):
                        peer.heard += peer.incoming.feed(data)
                seen = 1 + sum(isinstance(message, wire.Step) for message in peer.heard)
                peer.heard.clear()
                peer.send(wire.Cancel(f"run {number}"))
                process.send_signal(signal.SIGCONT)
                done = await peer.next(wire.Done)
                assert (done.outcome, done.gaps) == ("cancelled", ())
                assert seen <= done.figures.steps <= seen + 1


async def test_another_version_is_refused_with_a_sentence(shared: Path, settings: Settings) -> None:
    async with listening(settings) as one:
        await one.client.load()
        async with calling(one.client.address, wire.Hello(protocol=2)) as peer:
            (failed,) = await peer.rest()
        assert failed.message == (
            "this worker speaks protocol 1, not 2; "
            "restart the editor so that both are of one version"
        )
        # Nobody else is disturbed.
        assert (await one.drafted(infill("a")))[-1].outcome == "converged"


async def test_a_killed_worker_is_lost_and_the_next_request_works(
    shared: Path, settings: Settings
) -> None:
    async with listening(settings) as one, listening(settings) as two:
        await two.client.load()
        async with aclosing(one.client.infill(infill("a", room=LONG))) as steps:
            assert isinstance(await anext(steps), wire.Step)
            process = await the_worker(shared)
            process.kill()
            with pytest.raises(WorkerLost, match="the model worker stopped; ask again"):
                async for _ in steps:
                    pass
        assert one.states[-1] == "lost"
        await two.until("lost")
        await ended(process)
        again = await asyncio.gather(one.drafted(infill("b")), two.drafted(infill("b")))
        assert [messages[-1].outcome for messages in again] == ["converged"] * 2
        assert (await the_worker(shared)).pid != process.pid


async def test_an_idle_worker_gives_its_memory_back_and_goes_when_nobody_is_there(
    runtime: Path, settings: Settings
) -> None:
    idle = Settings(model=settings.model, device="cpu", threads=1, idle_s=0.5)
    async with listening(idle) as one:
        assert (await one.drafted(infill("a")))[-1].outcome == "converged"
        await one.until("off")
        process = await the_worker(runtime)
        # While an editor is there it stays, and loads again when asked.
        assert (await one.drafted(infill("b")))[-1].outcome == "converged"
        assert (await the_worker(runtime)).pid == process.pid
        assert "lost" not in one.states
    await ended(process)
    assert left_in(runtime) == {".lock", ".log"}


async def test_a_model_that_is_not_there_is_a_sentence_and_the_worker_lives_on(
    runtime: Path,
) -> None:
    async with listening(Settings(model=str(runtime / "nowhere"), threads=1)) as one:
        pids = set()
        for _ in range(2):
            with pytest.raises(
                WorkerRefused, match=r"there is no model '/.*/nowhere'; use"
            ) as told:
                await one.drafted(infill("a"))
            assert told.value.code == "model"
            pids.add((await the_worker(runtime)).pid)
        assert len(pids) == 1
        assert one.states[-1] == "off"
        assert "there is no model" in one.client.status.message


async def test_a_process_that_fails_at_its_start_says_why(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "raise RuntimeError('this installation is broken')\n"
    monkeypatch.setenv("PYTHONPATH", str(written(tmp_path / "broken" / "msgspec.py", module)))
    async with listening(Settings()) as one:
        with pytest.raises(WorkerLost) as lost:
            await one.drafted(infill("a"))
        assert str(lost.value) == (
            "the model worker did not start: RuntimeError: this installation is broken "
            f"(see {one.client.address.log})"
        )
        assert one.states == ["starting", "off"]


async def test_what_lies_in_the_working_folder_is_never_imported(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository must not decide what runs on a machine."""
    trap = f"import os\nos.makedirs({str(tmp_path / 'trapped' / 'by.me')!r}, exist_ok=True)\n"
    for name in ("frostline", "torch", "msgspec", "psutil"):
        for folder in (runtime, tmp_path / "repository"):
            written(folder / f"{name}.py", trap)
    monkeypatch.chdir(folder)
    async with listening(Settings(model="nowhere", threads=1)) as one:
        with pytest.raises(WorkerRefused, match="there is no model"):
            await one.drafted(infill("a"))
    assert left_in(tmp_path / "trapped") == set()


def written(path: Path, text: str) -> Path:
    """Write a file, and return the folder that it is in."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path.parent

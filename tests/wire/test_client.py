"""The server's end of the wire, against real workers in this process and odd ones made by hand."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frostline.config import Settings
from frostline.errors import WireError, WorkerLost, WorkerRefused
from frostline.models.backend import MaskedBackend
from frostline.wire import client as clients
from frostline.wire import framing
from frostline.wire import messages as wire
from frostline.wire.address import Address, read_port, write_private
from frostline.wire.client import WorkerClient
from frostline.worker.engine import Engine
from worker.peers import Held, infill, serving

GREETING = wire.Hello(), wire.Status("ready", model="odd")


@pytest.fixture
async def told() -> list[str]:
    """The states that the client tells of."""
    return []


@pytest.fixture
async def client(runtime: Path, told: list[str], no_process: None) -> AsyncIterator[WorkerClient]:
    client = WorkerClient(Settings(), lambda status: told.append(status.state))
    yield client
    await client.close()


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real processes are for test_processes.py."""

    def refuse(*_: object) -> Any:
        raise WorkerLost("no process is started here")

    monkeypatch.setattr(clients, "start_worker", refuse)


Handler = Callable[["Odd"], Awaitable[None]]


class Odd:
    """The worker's end of one connection, made by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer, self.incoming = reader, writer, framing.worker_side()
        self.heard: list[wire.ToWorker] = []

    def send(self, *messages: wire.Message) -> None:
        for message in messages:
            self.writer.write(framing.frame(message))

    async def next(self) -> wire.ToWorker | None:
        """Return the next message, None when the client has left."""
        while not self.heard:
            if not (data := await self.reader.read(1 << 16)):
                return None
            self.heard += self.incoming.feed(data)
        return self.heard.pop(0)


@asynccontextmanager
async def odd_worker(address: Address, handler: Handler) -> AsyncIterator[list[Odd]]:
    """Give the connections that come in; each is treated by `handler` and then hung up."""
    links: list[Odd] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        links.append(Odd(reader, writer))
        await handler(links[-1])
        writer.close()

    address.path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(talk, address.path)
    try:
        yield links
    finally:
        server.close()
        for link in links:
            link.writer.close()


def made(runtime: Path) -> list[str]:
    """Return what there is in a runtime directory."""
    return sorted(path.name for path in runtime.glob("*"))


async def drafted(client: WorkerClient, request: wire.Infill) -> list[Any]:
    async with aclosing(client.infill(request)) as messages:
        return [message async for message in messages]


# --- with a real worker -----------------------------------------------------------------------------


async def test_nothing_is_sent_or_made_before_somebody_asks(
    runtime: Path, client: WorkerClient, told: list[str]
) -> None:
    await client.unload()
    client.cancel("anything")
    assert client.sent == 0
    assert told == []
    assert client.status.state == "off"
    assert made(runtime) == []


async def test_a_run_a_score_and_a_load_over_one_connection(
    client: WorkerClient, told: list[str], backend: MaskedBackend
) -> None:
    async with serving(client.address, lambda *_: Engine(backend)) as worker:
        await client.load()
        score = wire.Score("s", (wire.Text("x = "), wire.Gap(0, old="yz")))
        first, second, scored = await asyncio.gather(
            drafted(client, infill("a", room=3)),
            drafted(client, infill("b", room=2)),
            client.score(score),
        )
        assert [type(message) for message in first] == [wire.Step] * 3 + [wire.Done]
        assert [type(message) for message in second] == [wire.Step] * 2 + [wire.Done]
        assert {message.id for message in first} == {"a"}
        assert scored.tokens == (2,)
        assert client.sent == 4
        assert len(worker.talks) == 1
    assert told[:3] == ["starting", "off", "loading"]
    assert "busy" in told


async def test_a_run_that_is_let_go_is_cancelled(
    client: WorkerClient, backend: MaskedBackend
) -> None:
    held = Held(backend)
    async with serving(client.address, lambda *_: held) as worker:
        async with aclosing(client.infill(infill("a"))) as steps:
            taking = asyncio.ensure_future(anext(steps))
            await held.begun()
            held.let_go()
            assert isinstance(await taking, wire.Step)
            await held.begun()
        held.let_go(100)
        # The worker has heard of it by the time it answers the next.
        assert (await client.score(wire.Score("s", (wire.Gap(0, old="y"),)))).tokens == (1,)
        assert worker.runs == []
        assert held.taken == ["a", "a", "s"]


async def test_a_task_that_is_cancelled_in_mid_run_cancels_the_run(
    client: WorkerClient, backend: MaskedBackend
) -> None:
    held = Held(backend)
    async with serving(client.address, lambda *_: held) as worker:
        task = asyncio.create_task(drafted(client, infill("a")))
        await held.begun()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.let_go(100)
        await client.score(wire.Score("s", (wire.Gap(0, old="y"),)))
        assert worker.runs == []
        assert held.taken == ["a", "s"]


async def test_a_cancel_by_name_ends_the_run_with_what_it_cost(
    client: WorkerClient, backend: MaskedBackend
) -> None:
    held = Held(backend)
    async with serving(client.address, lambda *_: held):
        task = asyncio.create_task(drafted(client, infill("a")))
        await held.begun()
        client.cancel("a")
        held.let_go(100)
        (done,) = await task
        assert (done.outcome, done.figures.steps) == ("cancelled", 1)


async def test_a_refusal_is_raised_with_its_code(
    client: WorkerClient, backend: MaskedBackend
) -> None:
    async with serving(client.address, lambda *_: Engine(backend)):
        with pytest.raises(WorkerRefused, match="needs 5000 tokens") as refused:
            await drafted(client, infill("a", room=5000))
        assert refused.value.code == "too-long"


async def test_a_token_opens_a_worker_on_a_port(
    client: WorkerClient, runtime: Path, backend: MaskedBackend
) -> None:
    client.address = replace(
        client.address, path=client.address.path.with_suffix(".json"), tcp=True
    )
    async with serving(client.address, lambda *_: Engine(backend)):
        assert (await drafted(client, infill("a")))[-1].outcome == "converged"
        wrong = WorkerClient(Settings())
        wrong.address = replace(client.address, path=runtime / "copy.json")
        port, _ = read_port(client.address.path)
        write_private(wrong.address.path, json.dumps({"port": port, "token": "guessed"}))
        with pytest.raises(WorkerRefused, match="the token is wrong"):
            await wrong.load()


async def test_a_listener_with_a_bug_does_not_lose_the_worker(
    runtime: Path, backend: MaskedBackend, no_process: None, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: wire.Status) -> None:
        raise ZeroDivisionError

    client = WorkerClient(Settings(), broken)
    async with serving(client.address, lambda *_: Engine(backend)):
        assert (await drafted(client, infill("a")))[-1].outcome == "converged"
        await client.close()
    assert "telling that the worker is loading failed" in caplog.text


async def test_a_request_that_cannot_be_sent_is_said_before_anything_is_started(
    client: WorkerClient,
) -> None:
    with pytest.raises(WireError, match="too large"):
        await drafted(client, wire.Infill("a", (wire.Text("x" * framing.MAX_FRAME),)))
    with pytest.raises(WireError, match="cannot be sent"):
        await drafted(client, wire.Infill("a", (wire.Text("\ud800"),)))
    assert client.sent == 0


async def test_the_same_relative_folder_is_another_model_elsewhere(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = WorkerClient(Settings(model="m")).address
    monkeypatch.chdir(tmp_path)
    there = WorkerClient(Settings(model="m")).address
    assert here != there
    assert WorkerClient(Settings(model=str(tmp_path / "m"))).address == there


# --- with odd ones ----------------------------------------------------------------------------------


async def greeted(link: Odd) -> wire.ToWorker | None:
    """Greet a client and return the first thing that it asks."""
    await link.next()
    link.send(*GREETING)
    return await link.next()


async def test_everybody_who_waits_hears_of_a_worker_that_dies(
    client: WorkerClient, told: list[str]
) -> None:
    async def handler(link: Odd) -> None:
        await greeted(link)
        await link.next()

    async with odd_worker(client.address, handler) as links:
        answers = await asyncio.gather(
            drafted(client, infill("a")), drafted(client, infill("b")), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [WorkerLost, WorkerLost]
        assert str(answers[0]) == "the model worker stopped; ask again and it will be started anew"
        assert told[-1] == "lost"
        # The next request makes a new connection.
        with pytest.raises(WorkerLost):
            await asyncio.gather(drafted(client, infill("c")), drafted(client, infill("d")))
        assert len(links) == 2


async def test_a_worker_that_talks_nonsense_is_lost(client: WorkerClient, told: list[str]) -> None:
    async def handler(link: Odd) -> None:
        await greeted(link)
        link.writer.write(b"\xff" * 9)
        await link.next()

    async with odd_worker(client.address, handler):
        with pytest.raises(WorkerLost, match="the connection to the model worker broke"):
            await drafted(client, infill("a"))
    assert told[-1] == "lost"


async def test_a_failure_of_the_connection_is_told_to_everybody(client: WorkerClient) -> None:
    async def handler(link: Odd) -> None:
        await greeted(link)
        await link.next()
        link.send(wire.Failed("", "wire", "this and that"))
        await link.next()

    async with odd_worker(client.address, handler):
        answers = await asyncio.gather(
            drafted(client, infill("a")), drafted(client, infill("b")), return_exceptions=True
        )
    assert [str(answer) for answer in answers] == ["this and that"] * 2
    assert {type(answer) for answer in answers} == {WorkerRefused}


async def test_late_news_of_a_forgotten_run_is_no_news(client: WorkerClient) -> None:
    async def handler(link: Odd) -> None:
        await greeted(link)
        link.send(wire.Step("forgotten", 1, 2, ()), wire.Done("forgotten", "converged"))
        link.send(wire.Hello(), wire.Step("a", 1, 1, ()), wire.Done("a", "converged"))
        await link.next()

    async with odd_worker(client.address, handler):
        heard = await drafted(client, infill("a"))
        assert [message.id for message in heard] == ["a", "a"]


async def test_an_answer_of_another_kind_is_said(client: WorkerClient) -> None:
    async def handler(link: Odd) -> None:
        asked = await greeted(link)
        while asked is not None:
            link.send(
                wire.Scored(asked.id, (), ())
                if isinstance(asked, wire.Infill)
                else wire.Done(asked.id, "converged")
            )
            asked = await link.next()

    async with odd_worker(client.address, handler):
        with pytest.raises(WireError, match="answered a run with something else"):
            await drafted(client, infill("a"))
        with pytest.raises(WireError, match="answered a score with something else"):
            await client.score(wire.Score("s", ()))


@pytest.mark.parametrize(
    ("greeting", "sentence"),
    [
        (wire.Hello(protocol=2), "is of another version; end it"),
        (wire.Status("ready"), "is of another version; end it"),
        (wire.Failed("", "wire", "this worker speaks protocol 2"), "speaks protocol 2"),
    ],
    ids=["protocol", "no-hello", "refusal"],
)
async def test_a_worker_that_greets_otherwise_is_refused(
    client: WorkerClient, told: list[str], greeting: wire.Message, sentence: str
) -> None:
    async def handler(link: Odd) -> None:
        link.send(greeting)
        await link.next()

    async with odd_worker(client.address, handler):
        with pytest.raises(WorkerRefused, match=sentence):
            await drafted(client, infill("a"))
    assert told == ["starting", "off"]
    assert sentence in client.status.message


@pytest.mark.parametrize("behaviour", ["hangs up", "nonsense"])
async def test_who_does_not_greet_at_all_is_no_worker(client: WorkerClient, behaviour: str) -> None:
    async def handler(link: Odd) -> None:
        if behaviour == "nonsense":
            link.writer.write(b"HTTP/1.1 400 Bad Request\r\n")

    async with odd_worker(client.address, handler):
        # So one of our own would be started.
        with pytest.raises(WorkerLost, match="no process is started here"):
            await client.load()


async def test_a_request_that_is_let_go_while_the_worker_starts_does_not_end_the_start(
    client: WorkerClient, told: list[str]
) -> None:
    called, greet = asyncio.Event(), asyncio.Event()

    async def handler(link: Odd) -> None:
        called.set()
        await greet.wait()
        asked = await greeted(link)
        while isinstance(asked, wire.Infill):
            link.send(wire.Done(asked.id, "converged"))
            asked = await link.next()

    async with odd_worker(client.address, handler) as links:
        for name in ("a", "b"):
            task = asyncio.create_task(drafted(client, infill(name)))
            await called.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        greet.set()
        assert [message.id for message in await drafted(client, infill("c"))] == ["c"]
        assert len(links) == 1
        assert client.sent == 1
    assert told[:2] == ["starting", "ready"]


async def test_to_let_go_of_a_worker_ends_what_is_under_way(client: WorkerClient) -> None:
    asked = asyncio.Event()

    async def handler(link: Odd) -> None:
        await greeted(link)
        asked.set()
        await link.next()

    async with odd_worker(client.address, handler):
        task = asyncio.create_task(drafted(client, infill("a")))
        await asked.wait()
        await client.close()
        with pytest.raises(WorkerLost, match="was let go"):
            await task


async def test_to_let_go_of_a_worker_that_starts_ends_the_wait_for_it(
    client: WorkerClient,
) -> None:
    called = asyncio.Event()

    async def handler(link: Odd) -> None:
        called.set()
        while await link.next():
            pass

    async with odd_worker(client.address, handler):
        task = asyncio.create_task(drafted(client, infill("a")))
        await called.wait()
        await client.close()
        with pytest.raises(WorkerLost, match="was let go"):
            await task


# --- starting ---------------------------------------------------------------------------------------


class Process:
    """A process that ended with a code, or with None goes on."""

    def __init__(self, code: int | None) -> None:
        self.returncode = code

    def poll(self) -> int | None:
        return self.returncode


async def test_a_worker_that_made_way_for_one_that_left_is_started_again(
    client: WorkerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    async def handler(link: Odd) -> None:
        await greeted(link)
        await link.next()

    async def late() -> None:
        async with odd_worker(client.address, handler):
            await over.wait()

    over, tasks = asyncio.Event(), []

    def start(*_: object) -> Any:
        started.append("one more")
        if len(started) == 3:
            tasks.append(asyncio.create_task(late()))
            return Process(None)
        return Process(0)

    monkeypatch.setattr(clients, "start_worker", start)
    await client.load()
    over.set()
    await asyncio.gather(*tasks)
    assert len(started) == 3


async def test_a_worker_that_never_answers_is_given_up(
    client: WorkerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "start_worker", lambda *_: Process(None))
    monkeypatch.setattr(clients, "START_S", 0.1)
    with pytest.raises(WorkerLost, match=r"does not answer; see .*\.log"):
        await client.load()


async def test_without_the_model_packages_it_is_said_how_to_get_them(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_there", lambda name: name != "torch")
    client = WorkerClient(Settings())
    with pytest.raises(WorkerRefused, match=r"torch not installed; run: pip install") as refused:
        await client.load()
    assert refused.value.code == "install"
    assert "torch not installed" in client.status.message


async def test_a_process_that_cannot_be_started_is_said(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", fail)
    client = WorkerClient(Settings())
    with pytest.raises(WorkerLost, match="could not be started: no more processes"):
        await client.load()


async def test_without_a_private_place_no_worker_is_asked(
    client: WorkerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROSTLINE_RUNTIME_DIR", __file__)
    with pytest.raises(WorkerLost, match="cannot be made"):
        await client.load()
    assert client.status.state == "off"

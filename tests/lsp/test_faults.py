"""The real server and real worker processes, broken at every place: each time the text is as it was, the
session ends with its refusal, and the next request works."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tokenizers.pre_tokenizers import ByteLevel

from frostline.cli.client import EditorClient, editor
from frostline.config import Settings
from frostline.core.text import Document, Span
from frostline.lsp import extension as ext
from frostline.wire import framing
from frostline.wire import messages as wire
from frostline.wire.address import address_for
from harness.nursery import Nursery, nursery
from lsp.conftest import REAL, SERVER
from models import tiny
from wire.conftest import a_runtime, workers

pytestmark = pytest.mark.e2e

# No grammar: what a model of a few thousand weights writes would not parse.
URI = "file:///nowhere/notes.txt"
TEXT = "total = old\n"
HOLE = Span(8, 11)
SLOTS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model without pads: a run takes exactly as many steps as it has slots."""
    # ASCII only: half a character at its end would have the draft refused.
    letters = enumerate(sorted(ByteLevel.alphabet()), len(tiny.SPECIAL))
    banned = [*range(len(tiny.SPECIAL)), *(id for id, letter in letters if ord(letter) > 126)]
    return tiny.make(
        tmp_path_factory.mktemp("tiny"), length={"kind": "fixed"}, max_context=1024, banned=banned
    )


@pytest.fixture(scope="module")
def workshop() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with a_runtime(monkeypatch) as path:
        yield path


@pytest.fixture
def settings(folder: Path) -> Settings:
    return Settings(
        model=str(folder),
        device="cpu",
        threads=1,
        length=SLOTS,
        threshold=0.0,
        schedule="linear",
    )


# What is done at the n-th Step of a run (0 for its end) instead of passing it on; False lets it pass.
Fault = Callable[["Link", bytes, int], bool]


class Link:
    """One server on the one side, one real worker process on the other.

    Attributes:
        steps: how many steps of the present run the server has heard.
    """

    def __init__(self, pid: int, writer: asyncio.StreamWriter) -> None:
        self.pid, self.writer, self.steps = pid, writer, 0


class Between:
    """Stands at the worker's address, passes everything on, and breaks what it is told to break.

    Attributes:
        fault: what is done to the next message of a run that it wants; then never again.
        pids: the worker processes so far: a new one for each connection.
        protocol: the version that the workers say they speak.
    """

    def __init__(self, settings: Settings, nursery: Nursery) -> None:
        self.address = address_for(settings)
        self.fault: Fault | None = None
        self.pids: list[int] = []
        self.protocol = wire.PROTOCOL
        self._settings, self._nursery = settings, nursery

    async def _worker(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        socket = self.address.path.with_name(f"{len(self.pids)}.sock")
        self.pids.append(self._nursery.worker(self._settings, socket))
        while True:
            with contextlib.suppress(OSError):
                return await asyncio.open_unix_connection(socket)
            await asyncio.sleep(0.02)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Join a server to a worker of its own, until one of them leaves or the fault has come."""
        from_worker, to_worker = await self._worker()
        link = Link(self.pids[-1], writer)
        asking = asyncio.create_task(_pass_on(reader, to_worker))
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await from_worker.readexactly(4)
                data = head + await from_worker.readexactly(int.from_bytes(head, "big"))
                if self._breaks(link, data):
                    break
                writer.write(data)
        asking.cancel()
        to_worker.close()
        writer.close()

    def _breaks(self, link: Link, data: bytes) -> bool:
        (message,) = framing.server_side().feed(data)
        if isinstance(message, wire.Hello) and message.protocol != self.protocol:
            link.writer.write(framing.frame(wire.Hello(protocol=self.protocol)))
            return True
        if not isinstance(message, wire.Step | wire.Done):
            return False
        step = message.step if isinstance(message, wire.Step) else 0
        broken = self.fault is not None and self.fault(link, data, step)
        self.fault = None if broken else self.fault
        link.steps = step
        return broken


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.close()


Wired = Callable[..., AbstractAsyncContextManager[tuple[EditorClient, Between]]]


@pytest.fixture
def wired(runtime: Path, workshop: Nursery) -> Wired:
    """Start an editor whose server finds its worker behind a wire that can be broken."""

    @asynccontextmanager
    async def start(settings: Settings) -> AsyncIterator[tuple[EditorClient, Between]]:
        between = Between(settings, workshop)
        server = await asyncio.start_unix_server(between.talk, between.address.path)
        try:
            async with editor(settings, *SERVER, patience_s=60) as client:
                yield client, between
        finally:
            server.close()

    return start


def killed_after(steps: int) -> Fault:
    """The process is killed when the server has heard so many steps."""

    def fault(link: Link, data: bytes, step: int) -> bool:
        if link.steps == steps:
            os.kill(link.pid, signal.SIGKILL)
        return link.steps == steps

    return fault


def cut(link: Link, data: bytes, step: int) -> bool:
    if step == 2:
        link.writer.write(data[: len(data) // 2])
    return step == 2


def gigabyte(link: Link, data: bytes, step: int) -> bool:
    if step == 2:
        link.writer.write((1 << 30).to_bytes(4, "big") + b"x" * 1000)
    return step == 2


def garbage(link: Link, data: bytes, step: int) -> bool:
    if step == 2:
        link.writer.write(data[:4] + bytes(len(data) - 4))
    return step == 2


async def lost(client: EditorClient, document: Document) -> tuple[str, str]:
    """Have a draft begun that comes to nothing; return its session and the sentence told of it."""
    begun = await client.begin(document, HOLE)
    told = await client.state(begun["session"], "refused", "ready")
    assert told["state"] == "refused"
    assert told["refusal"]["code"] == "lost"
    assert client.buffers[URI].document is document
    assert (await client.accept(begun["session"]))["refusal"]["code"] == "lost"
    assert (await client.extension(ext.STATUS, {}))["worker"] == "lost"
    return begun["session"], told["refusal"]["message"]


async def drafted(client: EditorClient, document: Document) -> str:
    """Have a draft made; return its session."""
    begun = await client.begin(document, HOLE)
    assert (await client.state(begun["session"], "ready", "refused"))["state"] == "ready"
    return str(begun["session"])


@pytest.mark.complaint(11)
async def test_a_worker_killed_at_any_step_costs_that_draft_and_no_more(
    wired: Wired, settings: Settings
) -> None:
    async with wired(settings) as (client, between):
        document = client.open(URI, "plaintext", TEXT)
        session = await drafted(client, document)
        # The draft as it is in the end is shown once more, after the last step.
        assert [one["step"] for one in client.shown(session)] == [*range(1, SLOTS + 1), 0]
        for number in range(SLOTS + 1):
            between.fault = killed_after(number)
            session, sentence = await lost(client, document)
            assert sentence == "the model worker stopped; ask again and it will be started anew"
            assert [one["step"] for one in client.shown(session)] == [*range(1, number + 1)]
        # A draft that is ready needs no worker any more.
        session = await drafted(client, document)
        count = len(client.heard)
        os.kill(between.pids[-1], signal.SIGKILL)
        await client.until(
            lambda: any(told.get("worker") == "lost" for _, told in client.heard[count:])
        )
        after = client.apply((await client.accept(session))["edit"])
        client.applied(session, after)
        await client.state(session, "committed")
        assert client.undo(URI).text == TEXT
        assert client.messages == [], "a failure is told by its state, and interrupts nobody"


async def test_a_wire_that_breaks_in_the_middle_of_a_message_costs_that_draft(
    wired: Wired, settings: Settings
) -> None:
    async with wired(settings) as (client, between):
        document = client.open(URI, "plaintext", TEXT)
        for fault, words in [
            (cut, "the model worker stopped"),
            (gigabyte, "announced 1073741824 bytes; at most"),
            (garbage, "sent something unreadable"),
        ]:
            between.fault = fault
            assert words in (await lost(client, document))[1]
            await drafted(client, document)
        memory = psutil.Process(client.process.pid).memory_info().rss
        assert memory < 1 << 29, "what is announced is not kept room for"


async def test_a_worker_of_another_version_is_refused_and_a_right_one_is_found(
    wired: Wired, settings: Settings
) -> None:
    async with wired(settings) as (client, between):
        document = client.open(URI, "plaintext", TEXT)
        between.protocol += 1
        begun = await client.begin(document, HOLE)
        told = await client.state(begun["session"], "refused", "ready")
        assert told["refusal"]["code"] == "failed"
        assert "is of another version; end it" in told["refusal"]["message"]
        between.protocol -= 1
        await drafted(client, document)


async def test_a_torn_model_is_a_sentence_and_a_mended_one_works(
    wired: Wired, settings: Settings, folder: Path, tmp_path: Path
) -> None:
    torn = tmp_path / "torn"
    shutil.copytree(folder, torn)
    weights = torn / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    async with wired(replace(settings, model=str(torn))) as (client, between):
        document = client.open(URI, "plaintext", TEXT)
        begun = await client.begin(document, HOLE)
        told = await client.state(begun["session"], "refused", "ready")
        assert told["refusal"]["code"] == "failed"
        assert "model.safetensors" in told["refusal"]["message"]
        assert client.buffers[URI].document is document
        weights.write_bytes(whole)
        await drafted(client, document)
        assert len(between.pids) == 1, "the process that could not load it goes on"


@asynccontextmanager
async def own_runtime(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Path]:
    """Set a runtime directory of this test's own; the worker in it is ended with it."""
    with a_runtime(monkeypatch) as path:
        yield path


async def test_two_editors_share_a_worker_and_one_that_is_killed_disturbs_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Of its own: workers of other tests may still be there.
    async with (
        own_runtime(monkeypatch) as runtime,
        editor(REAL, *SERVER, patience_s=60) as one,
        editor(REAL, *SERVER) as two,
    ):
        document = two.open("file:///nowhere/b.txt", "plaintext", "x " * 50)
        await two.begin(document, Span(4, 6), length=200)
        await two.told(ext.PROVISIONAL, lambda shown: shown["step"] > 1)
        mine = one.open(URI, "plaintext", TEXT)
        begun = await one.begin(mine, HOLE, length=12)
        await one.told(ext.PROVISIONAL, lambda shown: True)
        (worker,) = workers(runtime)
        two.process.kill()
        await two.process.wait()
        assert two.buffers[document.uri].document is document
        told = await one.state(begun["session"], "ready", "refused")
        assert told["state"] == "ready"
        assert workers(runtime) == [worker]

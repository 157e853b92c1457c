"""Whatever comes over the wire, on either side: nobody's process ends, and each request has one answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frostline.config import Settings
from frostline.errors import FrostlineError, WorkerLost, WorkerRefused
from frostline.models.backend import MaskedBackend
from frostline.wire import client as clients
from frostline.wire import framing
from frostline.wire import messages as wire
from frostline.wire.address import Address, private_directory
from frostline.wire.client import WorkerClient
from frostline.worker.engine import Engine
from frostline.worker.main import Worker
from worker.peers import Peer, calling, infill, serving

# Half of what the profile says: each of these is a talk over a socket.
FUZZ = settings(
    max_examples=settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

# --- anything at all --------------------------------------------------------------------------------

TEXTS = st.sampled_from(["", "x = ", "\n", "é😀", "<|mask|>", "\r\n", "\0", "return " * 9])
NUMBERS = st.sampled_from([-(2**63), -1, 0, 1, 2, 7, 2**31, 2**63 - 1])
FLOATS = st.sampled_from([-1.0, 0.0, 0.3, 1.0, 7.0, 1e308])
GAPS = st.builds(
    wire.Gap,
    id=st.integers(-1, 2),
    old=TEXTS,
    multiline=st.booleans(),
    required=TEXTS,
    room=st.none() | NUMBERS,
)
SEGMENTS = st.lists(st.builds(wire.Text, TEXTS) | GAPS, max_size=4).map(tuple)
DECODINGS = st.builds(
    wire.Decoding,
    steps=st.none() | NUMBERS,
    schedule=st.sampled_from(["linear", "cosine"]),
    order=st.sampled_from(["confidence", "margin", "entropy"]),
    threshold=st.none() | FLOATS,
    entropy_bound=st.none() | FLOATS,
    temperature=FLOATS,
    seed=NUMBERS,
)
REQUESTS = st.one_of(
    st.builds(
        wire.Infill,
        id=st.just(""),
        segments=SEGMENTS,
        preamble=TEXTS,
        at_start=st.booleans(),
        instruction=TEXTS,
        strength=FLOATS,
        decoding=DECODINGS,
    ),
    st.builds(wire.Score, id=st.just(""), segments=SEGMENTS, preamble=TEXTS),
)
OTHERS = st.sampled_from(
    [wire.Hello(), wire.Hello(protocol=9), wire.AskStatus(), wire.Cancel("1"), wire.Cancel("?")]
)
PIECES = st.builds(
    wire.Piece, TEXTS, state=st.sampled_from(["open", "draft", "stable"]), confidence=FLOATS
)
NAMES = st.sampled_from(["run", "another", ""])
ANSWERS = st.one_of(
    st.builds(
        wire.Step,
        id=NAMES,
        step=NUMBERS,
        steps=NUMBERS,
        gaps=st.lists(
            st.builds(wire.GapDraft, NUMBERS, st.lists(PIECES, max_size=3).map(tuple)), max_size=2
        ).map(tuple),
    ),
    st.builds(
        wire.Done,
        id=NAMES,
        outcome=st.sampled_from(["converged", "budget", "cancelled"]),
        gaps=st.lists(
            st.builds(wire.GapText, NUMBERS, TEXTS, st.booleans(), FLOATS), max_size=2
        ).map(tuple),
        figures=st.builds(wire.Figures, steps=NUMBERS, regret=st.none() | FLOATS),
    ),
    st.builds(wire.Scored, NAMES, st.just((0.0,)), st.just((1,))),
    st.builds(wire.Failed, NAMES, TEXTS, TEXTS),
    st.builds(wire.Status, st.sampled_from(["off", "ready", "busy"]), max_context=NUMBERS),
    st.just(wire.Hello()),
)
JSON = st.recursive(
    st.none() | NUMBERS | FLOATS | TEXTS | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "id", "segments", "gaps"]), inner, max_size=4)
    ),
    max_leaves=6,
)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def cut(frame: bytes, at: int) -> bytes:
    return frame[:at] + bytes(1) + frame[at + 1 :]


# Bytes that are no message, or one with a byte of it changed.
BROKEN = st.one_of(
    st.binary(min_size=1, max_size=40).map(framed),
    JSON.map(msgspec.msgpack.encode).map(framed),
    st.just((1 << 30).to_bytes(4, "big")),
    st.builds(cut, st.sampled_from([framing.frame(infill("9"))]), st.integers(0, 40)),
)


# --- a worker, and whoever calls ----------------------------------------------------------------------


@pytest.fixture
async def worker(runtime: Path, backend: MaskedBackend) -> AsyncIterator[tuple[Worker, Address]]:
    address = Address(private_directory() / "w.sock")
    async with serving(address, lambda *_: Engine(backend)) as worker:
        yield worker, address


@FUZZ
@given(
    messages=st.lists(REQUESTS | OTHERS, max_size=5),
    broken=st.none() | BROKEN,
    cuts=st.lists(st.integers(1, 300), max_size=3),
)
async def test_a_worker_answers_each_request_once_and_outlives_every_caller(
    worker: tuple[Worker, Address],
    messages: Sequence[wire.Infill | wire.Score | wire.Message],
    broken: bytes | None,
    cuts: list[int],
) -> None:
    _, address = worker
    named = [
        msgspec.structs.replace(one, id=str(number))
        if isinstance(one, wire.Infill | wire.Score)
        else one
        for number, one in enumerate(messages)
    ]
    asked = {one.id for one in named if isinstance(one, wire.Infill | wire.Score)}
    async with asyncio.timeout(60), calling(address) as peer:
        data = b"".join(map(framing.frame, named))
        for end in cuts:
            peer.writer.write(data[:end])
            data = data[end:]
            await peer.writer.drain()
            await asyncio.sleep(0)
        peer.writer.write(data)
        answers = [await answer(peer) for _ in asked]
        assert sorted(one.id for one in answers) == sorted(asked)
        assert not [one for one in answers if getattr(one, "code", "") == "bug"], answers
        if broken is not None:
            peer.writer.write(broken)
        # Whatever that was: nobody else is disturbed, and nothing is answered twice.
        async with calling(address) as other:
            other.send(infill("honest", room=1))
            assert (await other.next(wire.Done)).outcome == "converged"
        assert not {one.id for one in peer.heard if hasattr(one, "id")} & asked


async def answer(peer: Peer) -> Any:
    """Return the next message that ends a request; a step is not the end of one."""
    while True:
        message = await peer.next(wire.Message)
        if isinstance(message, wire.Done | wire.Scored | wire.Failed):
            return message


# --- a server's client, and whatever listens there ----------------------------------------------------


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Any:
        raise WorkerLost("no process is started here")

    monkeypatch.setattr(clients, "start_worker", refuse)


@FUZZ
@given(
    greeting=st.sampled_from([wire.Hello(), wire.Hello(), wire.Hello()]) | ANSWERS,
    messages=st.lists(ANSWERS, max_size=5),
    broken=st.none() | BROKEN,
)
async def test_a_client_ends_each_request_once_whatever_the_worker_says(
    runtime: Path,
    no_process: None,
    greeting: wire.Message,
    messages: list[wire.Message],
    broken: bytes | None,
) -> None:
    async def hostile(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(framing.frame(greeting))
        await reader.read(1 << 16)
        writer.write(b"".join(map(framing.frame, messages)) + (broken or b""))
        writer.close()

    client = WorkerClient(Settings())
    client.address.path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(hostile, client.address.path)
    heard: list[wire.Step | wire.Done] = []
    error: FrostlineError | None = None
    try:
        async with asyncio.timeout(60):
            heard += [message async for message in client.infill(infill("run"))]
    except FrostlineError as raised:
        error = raised
    assert {message.id for message in heard} <= {"run"}
    ends = [message for message in heard if isinstance(message, wire.Done)]
    assert (len(ends), error is None) in ((1, True), (0, False)), "one end, or one reason"
    if error is not None and not isinstance(error, WorkerRefused):
        assert str(error)
    # The next request finds whoever listens there by then.
    await client.close()
    server.close()
    client.address.path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(honest, client.address.path)
    async with asyncio.timeout(60):
        assert [message async for message in client.infill(infill("next"))] == [
            wire.Done("next", "converged")
        ]
    await client.close()
    server.close()


async def honest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    incoming = framing.worker_side()
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            for message in incoming.feed(data):
                if isinstance(message, wire.Hello):
                    writer.write(framing.frame(wire.Hello()))
                elif isinstance(message, wire.Infill):
                    writer.write(framing.frame(wire.Done(message.id, "converged")))
    writer.close()

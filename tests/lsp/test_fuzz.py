"""Whatever is sent: no input ends the server, and each request gets exactly one answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lsprotocol import types

from frostline.lsp import extension as ext
from lsp.conftest import SERVER

pytestmark = pytest.mark.e2e

URI = "file:///nowhere/a.py"
METHODS = [
    *ext.METHODS,
    types.TEXT_DOCUMENT_INLINE_COMPLETION,
    types.TEXT_DOCUMENT_COMPLETION,
    types.COMPLETION_ITEM_RESOLVE,
    types.TEXT_DOCUMENT_CODE_ACTION,
    types.CODE_ACTION_RESOLVE,
    types.TEXT_DOCUMENT_CODE_LENS,
    types.WORKSPACE_EXECUTE_COMMAND,
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION,
    "workspace/textDocumentContent",
    "textDocument/nobodyKnowsThis",
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([URI, "", "python", "s1", "all", "frostline.rewrite", "\ud800", "é😀"]),
    st.text(max_size=8),
)
NAMES = st.sampled_from(
    [
        "textDocument",
        "uri",
        "version",
        "position",
        "range",
        "line",
        "character",
        "start",
        "end",
        "holes",
        "session",
        "scope",
        "contentChanges",
        "text",
        "languageId",
        "context",
        "settings",
        "command",
        "arguments",
        "data",
        "frostline",
        "hole",
        "span",
        "strength",
        "triggerKind",
    ]
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)


class Wire:
    """A server process and nothing between it and us."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.number = 0

    def send(self, message: Any) -> None:
        body = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def ask(self, method: str, params: Any) -> int:
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    async def read(self) -> dict:
        assert self.process.stdout is not None
        length = 0
        while (line := (await self.process.stdout.readline()).strip()) or not length:
            if not line and self.process.stdout.at_eof():
                raise AssertionError("the server ended")
            name, _, value = line.partition(b":")
            if name == b"Content-Length":
                length = int(value)
        return json.loads(await self.process.stdout.readexactly(length))

    async def answers(self, wanted: int) -> dict[int, int]:
        """Return how often each request was answered, up to the answer to `wanted`."""
        counted: dict[int, int] = {}
        while wanted not in counted:
            message = await self.read()
            if "method" in message:
                if "id" in message:  # a request of the server's own: answered with a plain no
                    self.send({"jsonrpc": "2.0", "id": message["id"], "result": None})
                continue
            counted[message["id"]] = counted.get(message["id"], 0) + 1
        return counted


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    process = await asyncio.create_subprocess_exec(
        *SERVER,
        "--worker",
        "scripted:/nowhere/there/is/no/such/script",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1 << 26,
    )
    wire = Wire(process)
    capabilities = {"experimental": {"frostline": {"version": 1}}}
    first = wire.ask(
        "initialize", {"processId": None, "rootUri": None, "capabilities": capabilities}
    )
    async with asyncio.timeout(30):
        assert await wire.answers(first) == {first: 1}
    document = {"uri": URI, "languageId": "python", "version": 1, "text": "x = 1\n"}
    wire.send(
        {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}
    )
    yield wire
    process.kill()
    await process.wait()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    messages=st.lists(
        st.tuples(st.sampled_from(METHODS), JSON, st.booleans()), min_size=1, max_size=8
    )
)
async def test_every_request_has_one_answer(
    wire: Wire, messages: list[tuple[str, Any, bool]]
) -> None:
    asked = set()
    for method, params, request in messages:
        if request:
            asked.add(wire.ask(method, params))
        else:
            wire.send({"jsonrpc": "2.0", "method": method, "params": params})
    async with asyncio.timeout(60):
        answers = await wire.answers(wire.ask(ext.STATUS, {}))
        # Work that takes longer than a status answers behind it.
        while not asked <= set(answers):
            for number, count in (await wire.answers(wire.ask(ext.STATUS, {}))).items():
                answers[number] = answers.get(number, 0) + count
    assert all(count == 1 for count in answers.values()), answers
    assert wire.process.returncode is None


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n\r\n",
        b"Content-Length: 5\r\n\r\nhello",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 4\r\n\r\nnull",
        b'Content-Length: 9\r\n\r\n{"a": 01}',
        b"Content-Length: 3\r\n\r\n\xff\xfe\xfd",
        b"Content-Type: nonsense\r\nContent-Length: 2\r\n\r\n{}",
        b'Content-Length: 17\r\n\r\n{"jsonrpc":"1.0"}',
    ],
)
async def test_what_is_no_message_at_all_does_not_end_the_server(wire: Wire, data: bytes) -> None:
    assert wire.process.stdin is not None
    wire.process.stdin.write(data)
    async with asyncio.timeout(30):
        number = wire.ask(ext.STATUS, {})
        assert (await wire.answers(number))[number] == 1

"""The pages under fixtures/edits through the real server, over stdio, with a scripted worker."""

import json
from dataclasses import asdict

import pytest

from frostline.cli.client import EditorClient
from frostline.core.text import Document, Encoding, Position, Span, difference
from frostline.lsp import extension as ext
from harness import cases
from lsp.conftest import Scripted

CASES = cases.load()
RENAMED = "file:///nowhere/renamed.py"
URI = "file:///nowhere/case.py"


@pytest.mark.e2e
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_case(case: cases.Case, scripted: Scripted) -> None:
    runs = [[list(texts) for texts in zip(*run, strict=True)] for run in case.runs]
    async with scripted(runs, pause_ms=200 if "accept early" in case.do else 5) as client:
        document = client.open(URI, case.language, case.text)
        begun = await client.begin(document, *case.holes)
        assert [_span(document, hole["range"]) for hole in begun["holes"]] == list(case.holes)
        if "accept early" in case.do:
            await client.told(ext.PROVISIONAL, lambda shown: shown["step"] == 1)
        else:
            await client.state(begun["session"], "ready", "refused")
        assert client.buffers[URI].document is document, "the text changed before the accept"
        answer, undone = {}, []
        held = "hold" in case.do
        for line in case.do:
            if line.startswith("accept") and "early" not in line and not held:
                await client.settled(begun["session"])
            answer = await _do(client, begun["session"], line, undone) or answer
        if case.refused is not None:
            assert answer["refusal"]["code"] == case.refused, _log(case, client)
            assert answer["refusal"]["message"].endswith(".")
        else:
            assert client.buffers[URI].document.text == case.after, _log(case, client)
            edits = ("accept", "type", "paste", "another", "redo")
            steps = sum(line.startswith(edits) for line in case.do)
            steps -= case.do.count("undo")
            assert len(client.buffers[URI].undo) == steps, "each accept is one undo step"
            for _ in range(steps):
                client.undo(URI)
            assert client.buffers[URI].document.text == case.text


async def _do(client: EditorClient, session: str, line: str, undone: list[str]) -> dict | None:
    verb, _, rest = line.partition(" ")
    if verb in ("type", "paste"):
        place, _, text = rest.partition(" ")
        times, _, text = text.partition(" ") if verb == "paste" else ("1", "", text)
        document = client.buffers[URI].document
        ends = [
            document.offset(Position(*map(int, end.split(":"))), Encoding.UTF32)
            for end in place.split("-")
        ]
        client.type(URI, Span(ends[0], ends[-1]), json.loads(text) * int(times))
    elif verb == "undo":
        undone.append(client.buffers[URI].document.text)
        client.undo(URI)
    elif verb == "redo":
        again = difference(client.buffers[URI].document.text, undone.pop())
        client.type(URI, again.span, again.text)
    elif verb == "another":
        client.apply(_workspace_edit(client.buffers[URI].document, rest))
    elif verb == "reject":
        await client.extension(ext.REJECT, ext.Reject(session=session))
    elif verb == "close":
        client.close(URI)
    elif verb == "rename":
        text = client.buffers[URI].document.text
        client.close(URI)
        client.open(RENAMED, "python", text)
    elif verb == "pin":
        start, end = map(int, rest.split("-"))
        await client.extension(ext.PIN, ext.Pin(session=session, hole=0, span=(start, end)))
    elif verb == "retry":
        await client.extension(ext.REFINE, ext.Refine(session=session))
    elif verb == "back":
        await client.settled(session)
        await client.extension(ext.BACK, ext.Back(session=session))
    elif verb == "accept":
        return await _accept(client, session, rest.split())
    return None


async def _accept(client: EditorClient, session: str, words: list[str]) -> dict:
    scope = words[0] if words and words[0] in ("word", "line", "hole", "stable") else "all"
    answer = await client.accept(session, scope=scope, anyway="anyway" in words)
    if "edit" in answer:
        client.applied(session, client.apply(answer["edit"]))
        await client.settled(session)
    return answer


def _workspace_edit(document: Document, rest: str) -> dict:
    """Return the edit that another server asks the editor for."""
    edits = [
        {"range": {"start": asdict(start), "end": asdict(end)}, "newText": text}
        for start, end, text in cases.placed(rest)
    ]
    identifier = {"uri": document.uri, "version": document.version}
    return {"documentChanges": [{"textDocument": identifier, "edits": edits}]}


def _span(document: Document, range: dict) -> Span:
    ends = (document.offset(Position(**range[end]), Encoding.UTF32) for end in ("start", "end"))
    return Span(*ends)


def _log(case: cases.Case, client: EditorClient) -> str:
    heard = "\n".join(f"{method} {params}" for method, params in client.heard)
    return f"{case.prose}\n\n{heard}"

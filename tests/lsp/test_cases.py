"""The pages under fixtures/edits through the real server, over stdio, with a scripted worker."""

import json

import pytest

from frostline.cli.client import EditorClient
from frostline.core.text import Document, Encoding, Position, Span
from frostline.lsp import extension as ext
from harness import cases
from lsp.conftest import Scripted

CASES = cases.load()
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
        answer = {}
        for line in case.do:
            answer = await _do(client, begun["session"], line) or answer
        if case.refused is not None:
            assert answer["refusal"]["code"] == case.refused, _log(case, client)
            assert answer["refusal"]["message"].endswith(".")
        else:
            assert client.buffers[URI].document.text == case.after, _log(case, client)
            assert len(client.buffers[URI].undo) == 1
            assert client.undo(URI).text == case.text


async def _do(client: EditorClient, session: str, line: str) -> dict | None:
    verb, _, rest = line.partition(" ")
    if verb == "type":
        place, _, text = rest.partition(" ")
        document = client.buffers[URI].document
        at = document.offset(Position(*map(int, place.split(":"))), Encoding.UTF32)
        client.type(URI, Span(at, at), json.loads(text))
    elif verb == "reject":
        await client.extension(ext.REJECT, ext.Reject(session=session))
    elif verb == "close":
        client.close(URI)
    else:
        answer = await client.accept(session)
        if "edit" in answer:
            client.applied(session, client.apply(answer["edit"]))
            await client.state(session, "committed")
        return answer
    return None


def _span(document: Document, range: dict) -> Span:
    ends = (document.offset(Position(**range[end]), Encoding.UTF32) for end in ("start", "end"))
    return Span(*ends)


def _log(case: cases.Case, client: EditorClient) -> str:
    heard = "\n".join(f"{method} {params}" for method, params in client.heard)
    return f"{case.prose}\n\n{heard}"

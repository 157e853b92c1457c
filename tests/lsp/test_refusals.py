"""The pages under fixtures/edits/refused through the real server, over stdio, with a scripted worker."""

import pytest

from frostline.cli.client import EditorClient
from frostline.core.text import Document, Encoding, Position, Span
from harness import cases
from lsp.conftest import Scripted

CASES = cases.load(cases.REFUSED)


@pytest.mark.e2e
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_refused(case: cases.Case, scripted: Scripted) -> None:
    runs = [[list(texts) for texts in zip(*run, strict=True)] for run in case.runs]
    (lost_after,) = [int(line[5:]) for line in case.do if line.startswith("lose ")] or [None]
    async with scripted(runs, lost_after=lost_after, own_settings=False) as client:
        client.notify(
            "workspace/didChangeConfiguration", {"settings": {"frostline": case.settings}}
        )
        document = client.open(f"file:///nowhere/{case.file}", case.language, case.text)
        sessions: list[str] = []
        answers = [await _do(client, document, case, sessions, line) for line in case.do]
        refusal = answers[-1]["refusal"]
        assert refusal["code"] == case.refused
        assert len(refusal["message"].split()) > 3, "a sentence that says what to do"
        assert client.buffers[document.uri].document is document


async def _do(
    client: EditorClient, document: Document, case: cases.Case, sessions: list[str], line: str
) -> dict:
    verb, _, rest = line.partition(" ")
    if verb == "ask":
        spans = [_span(document, place) for place in rest.split() if place != "nowhere"]
        answer = await client.begin(document, *(spans if rest else case.holes))
        if "session" in answer:
            sessions.append(answer["session"])
        return answer
    if verb == "accept":
        session = {"first": sessions[0], "nobody's": "s99"}.get(rest, sessions[-1])
        if session in sessions:
            await client.settled(session)
        return await client.accept(session)
    assert verb == "lose", line
    return {}


def _span(document: Document, place: str) -> Span:
    ends = [Position(*map(int, end.split(":"))) for end in place.split("-")]
    return Span(*(document.offset(end, Encoding.UTF32) for end in ends))

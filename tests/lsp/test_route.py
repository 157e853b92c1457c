"""What one model cannot do the other is asked for, with the sentence that says so; nothing else is."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from lsprotocol import types

from frostline.cli.client import editor
from frostline.core.text import Span
from frostline.errors import WorkerRefused
from frostline.lsp.route import CANNOT, Routed
from frostline.wire import messages as wire
from frostline.wire.scripted import Script, ScriptedWorker
from lsp.conftest import REAL, SERVER
from models import fill_in, gguf_files

ASKED = wire.Infill("run", (wire.Text("x = "), wire.Gap(0)), instruction="add them")
SENTENCE = "tiny does not follow instructions; leave it out, or choose another model"


class Refusing(ScriptedWorker):
    """A worker that says no."""

    def __init__(self, code: str, message: str = SENTENCE) -> None:
        super().__init__([])
        self._refusal = WorkerRefused(code, message)

    async def infill(self, request: wire.Infill) -> AsyncIterator[wire.Step | wire.Done]:
        self.requests.append(request)
        raise self._refusal
        yield  # an async generator, as the others are


def peer() -> ScriptedWorker:
    return ScriptedWorker([Script((("░░", "a░", "ab"),))])


async def heard(worker: Routed) -> list[wire.Step | wire.Done]:
    return [message async for message in worker.infill(ASKED)]


@pytest.mark.parametrize("code", sorted(CANNOT))
async def test_what_the_first_cannot_do_goes_to_the_peer_and_is_said(code: str) -> None:
    said, first, other = list[str](), Refusing(code), peer()
    *steps, done = await heard(Routed(first, other, "peer-7b", said.append))
    assert len(steps) == 3
    assert isinstance(done, wire.Done)
    assert done.gaps[0].text == "ab"
    assert other.requests == first.requests == [ASKED]
    assert said == [f"{SENTENCE}; so peer-7b is asked"]


@pytest.mark.parametrize("code", ["model", "empty", "bug"])
async def test_what_says_nothing_of_the_model_s_abilities_is_passed_on(code: str) -> None:
    said, other = list[str](), peer()
    with pytest.raises(WorkerRefused, match="tiny does not follow"):
        await heard(Routed(Refusing(code), other, "peer-7b", said.append))
    assert not other.requests
    assert not said


async def test_when_neither_can_both_sentences_are_heard() -> None:
    other = Refusing("no-instruction", "peer-7b does not follow instructions either")
    with pytest.raises(WorkerRefused) as refused:
        await heard(Routed(Refusing("no-instruction"), other, "peer-7b", lambda _: None))
    assert SENTENCE in str(refused.value)
    assert str(refused.value).endswith("peer-7b does not follow instructions either")


async def test_what_the_first_can_do_never_reaches_the_peer() -> None:
    first, other = peer(), peer()
    assert len(await heard(Routed(first, other, "peer-7b", lambda _: None))) == 4
    assert first.requests == [ASKED]
    assert not other.requests


@pytest.mark.e2e
async def test_a_hole_that_is_too_long_for_one_model_is_drafted_by_the_other(
    tmp_path: Path,
) -> None:
    """The embedded model sees 384 tokens; the file beside it has room for 400 slots."""
    path = gguf_files.convert(fill_in.qwen_coder(tmp_path / "folder"), tmp_path / "tiny.gguf")
    logged: list[str] = []
    async with editor(replace(REAL, peer=str(path)), *SERVER, patience_s=60) as client:

        @client._client.feature(types.WINDOW_LOG_MESSAGE)
        def told(params: types.LogMessageParams) -> None:
            logged.append(params.message)

        document = client.open("untitled:a.py", "python", "x = \n")
        begun = await client.begin(document, Span(4, 4), length=400)
        await client.state(begun["session"], "ready", "refused")
        # Bytes at random may make no text in the end. That they were drafted is the peer's doing.
        assert len(client.shown(begun["session"])) > 1
        # Said again for each repair of a draft that does not parse.
        (sentence,) = set(logged)
        assert "needs 400 tokens" in sentence
        assert sentence.endswith(f"so {path} is asked")

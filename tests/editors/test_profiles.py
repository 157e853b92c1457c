"""The habits of clients that exist, each as a profile, and every plain scenario of the server under each.

One server for a profile; a scenario opens a file of its own and sets the script that the worker plays.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from frostline.cli.client import EditorClient, editor
from frostline.core.text import Document, Encoding, Position, Span

pytestmark = pytest.mark.e2e

SERVER = (sys.executable, "-P", "-m", "frostline", "lsp")


@dataclass(frozen=True)
class Profile:
    """What a server can tell of a client.

    Attributes:
        encoding: the only one it takes, or the first that it offers.
        cancels: it takes its question for ghost text back when it asks another.
        versions: its question says which version of the text it is about.
        extras: it sends what Copilot's server is sent besides.
        whole: it sends the whole text at each change.
    """

    name: str
    encoding: Encoding
    cancels: bool = False
    versions: bool = False
    extras: bool = False
    whole: bool = False


PROFILES = [
    Profile("Neovim 0.12", Encoding.UTF8),
    Profile("Helix", Encoding.UTF8),
    Profile("Emacs eglot", Encoding.UTF32),
    Profile("Emacs lsp-mode", Encoding.UTF16, whole=True),
    Profile("copilot.lua", Encoding.UTF16, cancels=True, versions=True, extras=True),
]


class Habits:
    """A client with the habits of a profile."""

    def __init__(self, client: EditorClient, profile: Profile, folder: Path) -> None:
        self.client = client
        self.profile = profile
        self.folder = folder
        self.files = 0

    def open(self, text: str) -> Document:
        self.files += 1
        return self.client.open(f"untitled:Untitled-{self.files}", "python", text)

    def play(self, *runs: list[list[str]], pause_ms: float = 5) -> None:
        script = self.folder / f"script-{self.files}-{len(list(self.folder.iterdir()))}.json"
        script.write_text(json.dumps({"runs": runs, "pause_ms": pause_ms}))
        settings = {"frostline": {"worker": f"scripted:{script}"}}
        self.client.notify("workspace/didChangeConfiguration", {"settings": settings})

    def position(self, document: Document, offset: int) -> dict[str, int]:
        place = document.position(offset, self.profile.encoding)
        return {"line": place.line, "character": place.character}

    def range(self, document: Document, span: Span) -> dict[str, Any]:
        return {
            "start": self.position(document, span.start),
            "end": self.position(document, span.end),
        }

    def type(self, document: Document, span: Span, text: str) -> Document:
        if not self.profile.whole:
            return self.client.type(document.uri, span, text)
        after = document.text[: span.start] + text + document.text[span.end :]
        buffer = self.client.buffers[document.uri]
        buffer.document = Document.of(document.uri, document.version + 1, "python", after)
        self.client._changed(buffer.document, [types.TextDocumentContentChangeWholeDocument(after)])
        return buffer.document

    async def ghost(self, document: Document, offset: int) -> list[Any]:
        params: dict[str, Any] = {
            "textDocument": {"uri": document.uri},
            "position": self.position(document, offset),
            "context": {"triggerKind": 2},
        }
        if self.profile.versions:
            params["textDocument"]["version"] = document.version
        if self.profile.extras:
            params["formattingOptions"] = {"tabSize": 4, "insertSpaces": True}
        answer = await self.client.request(types.TEXT_DOCUMENT_INLINE_COMPLETION, params)
        assert answer is not None, "null is no answer that clears what is shown"
        return list(answer.items)

    def applied(self, document: Document, item: Any) -> str:
        """Return the text with an item in it, as this client counts positions."""
        ends = (
            document.offset(Position(place.line, place.character), self.profile.encoding)
            for place in (item.range.start, item.range.end)
        )
        start, end = ends
        return document.text[:start] + item.insert_text + document.text[end:]


async def ghost_text(habits: Habits) -> None:
    document = habits.open("name = 'é👋🏽'; total = \n")
    habits.play([["░░", "len(name)"]])
    (item,) = await habits.ghost(document, len(document.text) - 1)
    assert habits.applied(document, item) == "name = 'é👋🏽'; total = len(name)\n"


async def typing_on(habits: Habits) -> None:
    """The question before is not taken back by most; its answer must be one that can be ignored."""
    document = habits.open("total = \n")
    # Whether the first ever reaches the worker depends on which message the server reads first.
    habits.play([["░", "░", "░", "2"]], [["2"]], pause_ms=60)
    first = asyncio.create_task(habits.ghost(document, 8))
    await asyncio.sleep(0)
    if habits.profile.cancels:
        first.cancel()
    document = habits.type(document, Span(8, 8), "1")
    (item,) = await habits.ghost(document, 9)
    assert habits.applied(document, item) == "total = 12\n"
    if not habits.profile.cancels:
        assert await first == []


async def popup(habits: Habits) -> None:
    document = habits.open("def f(total):\n    ret\n")
    habits.play([["urn total"]])
    place = types.Position(1, 7)
    params = types.CompletionParams(types.TextDocumentIdentifier(document.uri), place)
    answer = await habits.client.request(types.TEXT_DOCUMENT_COMPLETION, params)
    (item,) = answer.items
    assert item.text_edit.new_text == "urn total"


async def code_action(habits: Habits) -> None:
    text = "name = '👋🏽'; x = 0\n"
    document = habits.open(text)
    habits.play([["░░", "1 + 1"]])
    span = Span(text.index("0"), text.index("0") + 1)
    ends = habits.range(document, span)
    params = types.CodeActionParams(
        types.TextDocumentIdentifier(document.uri),
        types.Range(types.Position(**ends["start"]), types.Position(**ends["end"])),
        types.CodeActionContext(diagnostics=[]),
    )
    actions = await habits.client.request(types.TEXT_DOCUMENT_CODE_ACTION, params)
    rewrite = next(one for one in actions if one.title.startswith("Rewrite"))
    resolved = await habits.client.request(types.CODE_ACTION_RESOLVE, rewrite)
    (change,) = resolved.edit.document_changes
    assert change.text_document.version == document.version
    assert resolved.edit.change_annotations is None, "none of these can ask about one"
    assert all(type(edit) is types.TextEdit for edit in change.edits)


async def command(habits: Habits) -> None:
    text = "name = '👋🏽'; x = 0\n"
    document = habits.open(text)
    habits.play([["░░", "1 + 1"]])
    span = Span(text.index("0"), text.index("0") + 1)
    argument = {"uri": document.uri, "range": habits.range(document, span)}
    assert await habits.client.command("frostline.rewrite", argument) == {}
    buffer = habits.client.buffers[document.uri]
    assert buffer.document.text == "name = '👋🏽'; x = 1 + 1\n"
    assert len(buffer.undo) == 1, "one edit"


async def refused(habits: Habits) -> None:
    document = habits.open("x = 0\n")
    habits.play([["((("]])
    argument = {"uri": document.uri, "range": habits.range(document, Span(4, 5))}
    answer = await habits.client.command("frostline.rewrite", argument)
    assert answer["refusal"]["code"] == "unsound"
    assert habits.client.buffers[document.uri].document.text == "x = 0\n"


async def nothing_to_say(habits: Habits) -> None:
    document = habits.open("total = \n")
    habits.play([["   "]])
    assert await habits.ghost(document, 8) == []


async def extras(habits: Habits) -> None:
    """What a client tells besides is welcome, from whomever it comes."""
    document = habits.open("total = \n")
    habits.play([["1"]])
    for method in ("didShowCompletion", "didPartiallyAcceptCompletion", "didFocus"):
        habits.client.notify(f"textDocument/{method}", {"item": {"insertText": "1"}})
    assert len(await habits.ghost(document, 8)) == 1


SCENARIOS = [
    ghost_text,
    typing_on,
    popup,
    code_action,
    command,
    refused,
    nothing_to_say,
    extras,
]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
async def test_every_scenario_under_the_habits_of(profile: Profile, tmp_path: Path):
    options: dict[str, Any] = {"extended": False, "encoding": profile.encoding}
    async with editor(None, *SERVER, patience_s=30, **options) as client:
        assert client.initialized is not None
        offered = client.initialized.capabilities.position_encoding
        assert offered == profile.encoding.value
        habits = Habits(client, profile, tmp_path)
        for scenario in SCENARIOS:
            await _told(scenario, habits)
        assert client.heard == [], "none of them asked for the extension"


async def _told(scenario: Callable[[Habits], Any], habits: Habits) -> None:
    try:
        await scenario(habits)
    except BaseException as error:
        error.add_note(f"in {scenario.__name__}, as {habits.profile.name}")
        raise

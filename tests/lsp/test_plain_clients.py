"""Clients without the extension: ghost text, the popup, code actions, commands, and one applyEdit."""

import asyncio
import sys

import pytest
from lsprotocol import types

from frostline.cli.client import EditorClient, editor
from frostline.core.text import Encoding, Span
from lsp.conftest import REAL, SERVER, Scripted

pytestmark = pytest.mark.e2e

URI = "untitled:Untitled-1"


def at(line: int, character: int, **more: object) -> dict:
    return {
        "textDocument": {"uri": URI},
        "position": {"line": line, "character": character},
        **more,
    }


async def inline(client: EditorClient, line: int, character: int, trigger: int = 1) -> list:
    params = at(line, character, context={"triggerKind": trigger})
    answer = await client.request(types.TEXT_DOCUMENT_INLINE_COMPLETION, params)
    assert answer is not None, "null leaves old ghost text up in Neovim 0.12"
    return list(answer.items)


async def test_inline_completion_is_advertised(scripted: Scripted) -> None:
    async with scripted([], extended=False) as client:
        assert client.initialized is not None
        capabilities = client.initialized.capabilities
        assert capabilities.inline_completion_provider is not None
        assert capabilities.completion_provider is not None
        assert capabilities.completion_provider.resolve_provider
        assert capabilities.code_action_provider is not None
        assert "frostline.rewrite" in capabilities.execute_command_provider.commands


@pytest.mark.complaint(25)
async def test_ghost_text_continues_the_line(scripted: Scripted) -> None:
    async with scripted([[["░░░", "len(values)"]]], extended=False) as client:
        client.open(URI, "python", "total = \n")
        (item,) = await inline(client, 0, 8)
        assert item.insert_text == "len(values)"
        assert item.range.start == item.range.end == types.Position(0, 8)
        assert client.heard == [], "a client that did not ask for the extension is not sent it"
        assert client.buffers[URI].undo == []


async def test_ghost_text_completes_a_word(scripted: Scripted) -> None:
    async with scripted([[["urn total"]]], extended=False) as client:
        client.open(URI, "python", "def f(total):\n    ret\n")
        (item,) = await inline(client, 1, 7)
        assert item.insert_text == "urn total"


@pytest.mark.complaint(15)
async def test_ghost_text_is_never_null(scripted: Scripted) -> None:
    async with scripted([[["x"]]], extended=False) as client:
        assert await inline(client, 0, 0) == []  # a file that is not open
        client.open(URI, "python", "x = 1\n")
        assert await inline(client, 999, 999) is not None


@pytest.mark.parametrize(
    ("text", "draft"), [("total = \n", "   "), ("f()\n", ")"), ("total = \n", "(((")]
)
@pytest.mark.complaint(21)
async def test_it_can_say_nothing(scripted: Scripted, text: str, draft: str) -> None:
    # Blank, what already stands behind it, and what would not parse.
    async with scripted([[[draft]]], extended=False) as client:
        client.open(URI, "python", text)
        assert await inline(client, 0, 2 if text.startswith("f") else 8) == []


@pytest.mark.complaint(19)
async def test_a_change_while_it_drafts_gives_nothing(scripted: Scripted) -> None:
    async with scripted([[["░", "░", "x"]]], pause_ms=300, extended=False) as client:
        client.open(URI, "python", "total = \n")
        asking = asyncio.create_task(inline(client, 0, 8))
        await asyncio.sleep(0)
        client.type(URI, Span(8, 8), "y")
        assert await asking == []


async def test_the_newest_question_is_the_one_answered(scripted: Scripted) -> None:
    async with scripted([[["░", "░", "x"]], [["y"]]], pause_ms=100, extended=False) as client:
        client.open(URI, "python", "total = \n")
        first = asyncio.create_task(inline(client, 0, 8))
        await asyncio.sleep(0)
        second = asyncio.create_task(inline(client, 0, 8))
        # Whether the first one's run had begun, and so which run is the second's, is up to the machine.
        assert [item.insert_text in ("x", "y") for item in await second] == [True]
        assert await first == []


async def test_copilot_shaped_extras_are_welcome(scripted: Scripted) -> None:
    async with scripted([[["1"]]], extended=False) as client:
        client.open(URI, "python", "total = \n")
        params = at(0, 8, context={"triggerKind": 1}, formattingOptions={"tabSize": 4})
        params["textDocument"]["version"] = 1
        answer = await client.request(types.TEXT_DOCUMENT_INLINE_COMPLETION, params)
        assert [item.insert_text for item in answer.items] == ["1"]
        client.notify("textDocument/didShowCompletion", {"item": {"insertText": "1"}})
        client.notify("textDocument/didFocus", {})
        params["textDocument"]["version"] = 7
        answer = await client.request(types.TEXT_DOCUMENT_INLINE_COMPLETION, params)
        assert not answer.items, "the client asks about a version that is not here"


async def test_the_popup_has_one_item_with_the_draft(scripted: Scripted) -> None:
    async with scripted([[["urn total"]]], extended=False) as client:
        client.open(URI, "python", "def f(total):\n    ret\n")
        params = types.CompletionParams(types.TextDocumentIdentifier(URI), types.Position(1, 7))
        answer = await client.request(types.TEXT_DOCUMENT_COMPLETION, params)
        (item,) = answer.items
        assert item.label == "return total"
        assert item.text_edit.new_text == "urn total"
        item = await client.request(types.COMPLETION_ITEM_RESOLVE, item)
        assert item.documentation.value == "```python\nreturn total\n```"


async def test_a_code_action_is_resolved_to_one_edit(scripted: Scripted) -> None:
    async with scripted([[["░░", "1 + 1"]]], extended=False) as client:
        client.open(URI, "python", "x = 0\n")
        actions = await code_actions(client, Span(4, 5))
        (rewrite,) = [action for action in actions if action.title.startswith("Rewrite")]
        assert list(rewrite.tags) == [types.CodeActionTag.LlmGenerated]
        assert rewrite.edit is None
        resolved = await client.request(types.CODE_ACTION_RESOLVE, rewrite)
        (change,) = resolved.edit.document_changes
        assert change.text_document.version == 1
        assert [edit.new_text for edit in change.edits] == ["1 + 1"]


@pytest.mark.complaint(12)
async def test_unfinished_bodies_are_offered_together(scripted: Scripted) -> None:
    text = "class A:\n    def f(self):\n        ...\n\n    def g(self):\n        pass\n"
    async with scripted([[["return 1"], ["return 2"]]], extended=False) as client:
        client.open(URI, "python", text)
        actions = await code_actions(client, Span(20, 20))
        (fill,) = [action for action in actions if "2 unfinished bodies" in action.title]
        resolved = await client.request(types.CODE_ACTION_RESOLVE, fill)
        (change,) = resolved.edit.document_changes
        assert [edit.new_text for edit in change.edits] == ["return 1", "return 2"]


async def code_actions(client: EditorClient, span: Span) -> list:
    document = client.buffers[URI].document
    start, end = (document.position(one, Encoding.UTF32) for one in (span.start, span.end))
    range = types.Range(
        types.Position(start.line, start.character), types.Position(end.line, end.character)
    )
    params = types.CodeActionParams(
        types.TextDocumentIdentifier(URI), range, types.CodeActionContext(diagnostics=[])
    )
    return list(await client.request(types.TEXT_DOCUMENT_CODE_ACTION, params))


async def command(client: EditorClient, name: str, **arguments: object) -> dict:
    range = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}}
    return await client.command(name, {"uri": URI, "range": range, **arguments})


@pytest.mark.complaint(5)
async def test_a_command_commits_with_one_apply_edit(scripted: Scripted) -> None:
    async with scripted([[["░░", "1 + 1"]]], extended=False) as client:
        client.open(URI, "python", "x = 0\n")
        assert await command(client, "frostline.rewrite", strength=0.5) == {}
        assert client.buffers[URI].document.text == "x = 1 + 1\n"
        assert len(client.buffers[URI].undo) == 1
        edits = [params for method, params in client.asked if method == "workspace/applyEdit"]
        assert len(edits) == 1
        progress = [params for method, params in client.asked if method == "progress"]
        assert len(progress) >= 3  # created, begun, ended


async def test_a_command_that_is_refused_says_why(scripted: Scripted) -> None:
    async with scripted([[["((("]]], extended=False) as client:
        client.open(URI, "python", "x = 0\n")
        answer = await command(client, "frostline.rewrite")
        assert answer["refusal"]["code"] == "unsound"
        assert client.buffers[URI].document.text == "x = 0\n"
        assert any("syntax" in message for message in client.messages)


async def test_wrong_settings_are_explained_and_change_nothing(scripted: Scripted) -> None:
    async with scripted([[["1"]]], extended=False) as client:
        client.open(URI, "python", "total = \n")
        for values in ({"frostline": {"order": "best"}}, {"frostline": {"colour": 1}}, [1], None):
            client.notify("workspace/didChangeConfiguration", {"settings": values})
        assert len(await inline(client, 0, 8)) == 1
        assert len(client.messages) == 2
        assert "order" in client.messages[0]
        client.notify(
            "workspace/didChangeConfiguration", {"settings": {"frostline": {"enabled": False}}}
        )
        assert await inline(client, 0, 8) == []


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.complaint(16)
async def test_every_encoding_puts_the_edit_where_it_belongs(
    scripted: Scripted, encoding: Encoding
) -> None:
    async with scripted([[["title"]]], encoding=encoding) as client:
        text = 'x = "👋🏽é\u2028" + name\f\n'
        document = client.open(URI, "python", text)
        begun = await client.begin(document, Span(text.index("name"), text.index("name") + 4))
        await client.state(begun["session"], "ready")
        answer = await client.accept(begun["session"])
        assert client.apply(answer["edit"]).text == text.replace("name", "title")


async def test_the_real_model_gives_ghost_text_or_nothing_but_never_null() -> None:
    async with editor(REAL, *SERVER, patience_s=60, extended=False) as client:
        client.open(URI, "python", "def add(a, b):\n    return \n")
        items = await inline(client, 1, 11)
        assert all("\n" not in item.insert_text for item in items)
        client.open("file:///nowhere/.env", "python", "A = \n")
        answer = await client.request(
            types.TEXT_DOCUMENT_INLINE_COMPLETION,
            {
                "textDocument": {"uri": "file:///nowhere/.env"},
                "position": {"line": 0, "character": 4},
            },
        )
        assert not answer.items


async def test_serving_loads_no_model_stack() -> None:
    probe = (
        "import sys, frostline.lsp.server, frostline.config as c;"
        "frostline.lsp.server.build(c.Settings());"
        "print([m for m in ('torch', 'transformers', 'safetensors', 'tokenizers') if m in sys.modules])"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", probe, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out.decode().strip() == "[]"


async def lenses(client: EditorClient) -> dict[str, types.Command]:
    params = types.CodeLensParams(types.TextDocumentIdentifier(URI))
    found = await client.request(types.TEXT_DOCUMENT_CODE_LENS, params)
    return {lens.command.title: lens.command for lens in found}


async def test_a_draft_that_waits_is_accepted_from_its_lens(scripted: Scripted) -> None:
    async with scripted([[["(("]]], extended=False) as client:
        client.open(URI, "python", "x = 0\n")
        assert await lenses(client) == {}
        assert (await command(client, "frostline.rewrite"))["refusal"]["code"] == "unsound"
        shown = await lenses(client)
        assert list(shown) == ["Accept though it does not parse", "Retry", "Reject"]
        accept = shown["Accept though it does not parse"]
        assert await client.command(accept.command, *accept.arguments) == {}
        assert client.buffers[URI].document.text == "x = ((\n"
        assert len(client.buffers[URI].undo) == 1
        assert await lenses(client) == {}


async def test_a_lens_that_is_pressed_twice_has_the_edit_made_once(scripted: Scripted) -> None:
    async with scripted([[["((("]]], extended=False) as client:
        client.open(URI, "python", "x = 1\n")
        assert (await command(client, "frostline.rewrite"))["refusal"]["code"] == "unsound"
        accept = (await lenses(client))["Accept though it does not parse"]
        presses = [client.command(accept.command, *accept.arguments) for _ in range(2)]
        assert await asyncio.gather(*presses) == [{}, {}]
        edits = [method for method, _ in client.asked if method == types.WORKSPACE_APPLY_EDIT]
        assert len(edits) == 1, "an editor that does not compare versions would make both"


async def test_a_draft_that_waits_is_tried_again_or_rejected_from_its_lens(
    scripted: Scripted,
) -> None:
    runs = [[["(("]]] * 4 + [[["1 + 1"]]]
    async with scripted(runs, extended=False) as client:
        client.open(URI, "python", "x = 0\n")
        await command(client, "frostline.rewrite")
        retry = (await lenses(client))["Retry"]
        await client.command(retry.command, *retry.arguments)
        await client.until(lambda: client.buffers[URI].document.text == "x = 1 + 1\n")
        await command(client, "frostline.rewrite")
        assert client.buffers[URI].document.version == 3


async def test_the_draft_can_be_read_as_a_document(scripted: Scripted) -> None:
    async with scripted([[["░░", "1 + 1"]]]) as client:
        document = client.open(URI, "python", "x = 0\r\n")
        begun = await client.begin(document, Span(4, 5))
        await client.state(begun["session"], "ready")
        params = types.TextDocumentContentParams(f"frostline:/{begun['session']}/a.py")
        answer = await client.request("workspace/textDocumentContent", params)
        assert answer.text == "x = 1 + 1\r\n"
        gone = types.TextDocumentContentParams("frostline:/s99/a.py")
        assert (await client.request("workspace/textDocumentContent", gone)).text == ""

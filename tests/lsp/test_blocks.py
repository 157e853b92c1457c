"""A long rewrite goes block by block, through real servers: each block in a session of its own."""

import pytest
from lsprotocol import types

from frostline.core.text import Span
from frostline.lsp import extension as ext
from lsp.conftest import Scripted

pytestmark = pytest.mark.e2e

URI = "file:///nowhere/long.py"
# Three functions of three lines each and a blank one: with four lines a block, one block each.
OLD = "".join(f"def {name}():\n    x = 1\n    return x\n\n" for name in "abc")
NEW = [f"def {name}():\n    y = 2\n    return y" for name in "abc"]
RUNS = [[["░", text]] for text in NEW]
FOUR = {"frostline": {"blockLines": 4}}


async def test_the_next_block_is_begun_when_the_one_before_it_is_in_the_file(
    scripted: Scripted,
) -> None:
    async with scripted(RUNS) as client:
        client.notify("workspace/didChangeConfiguration", {"settings": FOUR})
        document = client.open(URI, "python", OLD)
        begun = await client.begin(document, Span(0, len(OLD)), intent="rewrite")
        sessions = []
        for block in range(3):
            (hole,) = begun["holes"]
            assert hole["range"]["start"] == {"line": 4 * block, "character": 0}
            await client.state(begun["session"], "ready")
            told = {params["session"] for name, params in client.heard if name == ext.STATE}
            assert len(told) == block + 1, "one block at a time"
            answer = await client.accept(begun["session"])
            client.applied(begun["session"], client.apply(answer["edit"]))
            ended = await client.state(begun["session"], "committed")
            sessions.append(begun["session"])
            begun = ended.get("next")
        assert begun is None
        assert len(set(sessions)) == 3
        assert client.buffers[URI].document.text == "".join(text + "\n\n" for text in NEW)
        assert len(client.buffers[URI].undo) == 3


async def test_the_later_blocks_move_with_what_is_typed(scripted: Scripted) -> None:
    async with scripted(RUNS) as client:
        client.notify("workspace/didChangeConfiguration", {"settings": FOUR})
        document = client.open(URI, "python", OLD)
        begun = await client.begin(document, Span(0, len(OLD)), intent="rewrite")
        await client.state(begun["session"], "ready")
        second = OLD.index("def b")
        client.type(URI, Span(second, second), "# b follows\n")
        await client.settled(begun["session"])
        answer = await client.accept(begun["session"])
        client.applied(begun["session"], client.apply(answer["edit"]))
        ended = await client.state(begun["session"], "committed")
        (hole,) = ended["next"]["holes"]
        assert hole["range"]["start"] == {"line": 5, "character": 0}
        assert client.buffers[URI].document.text.splitlines()[4:6] == ["# b follows", "def b():"]


async def test_a_rejected_block_ends_the_rewrite(scripted: Scripted) -> None:
    async with scripted(RUNS) as client:
        client.notify("workspace/didChangeConfiguration", {"settings": FOUR})
        document = client.open(URI, "python", OLD)
        begun = await client.begin(document, Span(0, len(OLD)), intent="rewrite")
        await client.state(begun["session"], "ready")
        await client.extension(ext.REJECT, ext.Reject(session=begun["session"]))
        told = await client.state(begun["session"], "cancelled")
        assert "next" not in told
        await client.extension(ext.STATUS, {})
        sessions = {params["session"] for name, params in client.heard if name == ext.STATE}
        assert sessions == {begun["session"]}
        assert client.buffers[URI].document is document


async def test_a_command_writes_all_blocks_for_a_client_without_the_extension(
    scripted: Scripted,
) -> None:
    async with scripted(RUNS, extended=False) as client:
        client.notify("workspace/didChangeConfiguration", {"settings": FOUR})
        document = client.open(URI, "python", OLD)
        whole = client.ext_range(document, Span(0, len(OLD)))
        asked = {"uri": URI, "range": {"start": _place(whole.start), "end": _place(whole.end)}}
        answer = await client.command("frostline.rewrite", asked)
        assert "refusal" not in answer
        assert client.buffers[URI].document.text == "".join(text + "\n\n" for text in NEW)
        edits = [method for method, _ in client.asked if method == "workspace/applyEdit"]
        assert len(edits) == 3, "one edit for each block, each after the change of the one before"


async def test_a_code_action_on_a_long_selection_is_a_command(scripted: Scripted) -> None:
    """What an action resolves to is one edit, and blocks are several."""
    async with scripted(RUNS, extended=False) as client:
        client.notify("workspace/didChangeConfiguration", {"settings": FOUR})
        document = client.open(URI, "python", OLD)
        for span, by_command in ((Span(0, len(OLD)), True), (Span(0, 20), False)):
            params = types.CodeActionParams(
                types.TextDocumentIdentifier(URI),
                client._range(document, span),
                types.CodeActionContext(diagnostics=[]),
            )
            actions = await client.request("textDocument/codeAction", params)
            action = next(one for one in actions if one.title.startswith("Rewrite"))
            assert ("frostline.rewrite" in str(action)) is by_command, action


def _place(position: ext.Position) -> dict[str, int]:
    return {"line": position.line, "character": position.character}

"""Ghost text: `textDocument/inlineCompletion`, and the extras of Copilot-shaped plugins."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from frostline.context import holes
from frostline.core.barrier import Commit
from frostline.core.events import Wish
from frostline.core.text import Document
from frostline.lsp import convert
from frostline.lsp import extension as ext
from frostline.lsp.server import FrostlineServer, decoded

AUTOMATIC = 2


class Context(ext.Wire, frozen=True):
    """Why the client asks. 1 is on request, 2 while typing."""

    trigger_kind: int = AUTOMATIC


class InlineAsked(ext.Wire, frozen=True):
    """What is read of the request; clients send more, and all of it is welcome."""

    text_document: ext.DocumentId
    position: ext.Position
    context: Context = Context()


def register(server: FrostlineServer) -> None:
    """Add these features to the server."""

    @server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())
    async def inline(params: Any) -> types.InlineCompletionList:
        # Never null: Neovim 0.12 leaves old ghost text up at a null.
        asked = decoded(params, InlineAsked)
        return types.InlineCompletionList(items=await _items(server, asked))

    for name in ("didShowCompletion", "didPartiallyAcceptCompletion", "didFocus"):
        # Said by plugins for other servers. Nothing is counted here, so there is nothing to do.
        server.feature(f"textDocument/{name}")(_ignoring())


def _ignoring() -> Any:
    async def heard(_: Any) -> None:
        return None

    return heard


async def _items(
    server: FrostlineServer, asked: InlineAsked
) -> Sequence[types.InlineCompletionItem]:
    document = server.documents.get(asked.text_document.uri)
    if document is None or asked.text_document.version not in (None, document.version):
        return []
    found = await at_cursor(
        server,
        document,
        document.offset(convert.position_in(asked.position), server.documents.encoding),
        asked=asked.context.trigger_kind != AUTOMATIC,
        timeout_ms=server.settings.inline_ms,
    )
    if found is None:
        return []
    range = convert.range_out(document, found.edits[0].span, server.documents.encoding)
    return [types.InlineCompletionItem(insert_text=found.edits[0].text, range=range)]


async def at_cursor(
    server: FrostlineServer, document: Document, offset: int, *, asked: bool, timeout_ms: int
) -> Commit | None:
    """Return the commit of a draft at the cursor, or None where it is better to say nothing.

    Args:
        asked: the user wants a draft here, so one that the model is unsure of will do.
    """
    if server.driver.barred(document) is not None:
        return None
    if not asked and server.driver.live_on(document.uri) is not None:
        return None  # the user is looking at a draft already
    hole = await asyncio.to_thread(holes.at_cursor, document, offset)
    if (now := server.documents.get(document.uri)) is None or now.version != document.version:
        return None
    result = await server.driver.draft(document, [hole], Wish(), timeout_ms)
    if not isinstance(result, tuple):
        return None
    commit, confidence = result
    if not commit.edits or not commit.edits[0].text.strip():
        return None
    if not asked and confidence < server.settings.quiet_below:
        return None
    if _repeats_suffix(document, commit):
        return None
    return commit


def _repeats_suffix(document: Document, commit: Commit) -> bool:
    """Return True when the draft only says again what stands right behind it."""
    edit = commit.edits[0]
    behind = document.text[edit.span.end : edit.span.end + len(edit.text) + 64].strip()
    text = edit.text.strip()
    return bool(behind) and behind.startswith(text)

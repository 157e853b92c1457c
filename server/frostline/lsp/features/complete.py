"""The completion popup: one item with a draft, and with resolve its full text."""

from __future__ import annotations

from lsprotocol import types

from frostline.lsp import convert
from frostline.lsp.features.inline import at_cursor
from frostline.lsp.server import FrostlineServer

_LABEL = 60


def register(server: FrostlineServer) -> None:
    """Add these features to the server."""

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(resolve_provider=True))
    async def complete(params: types.CompletionParams) -> types.CompletionList:
        return types.CompletionList(is_incomplete=True, items=await _items(server, params))

    @server.feature(types.COMPLETION_ITEM_RESOLVE)
    async def resolve(item: types.CompletionItem) -> types.CompletionItem:
        data = convert.json_object(item.data)
        draft, language = data.get("draft", ""), data.get("language", "")
        item.documentation = types.MarkupContent(
            types.MarkupKind.Markdown, f"```{language}\n{draft}\n```"
        )
        return item


async def _items(
    server: FrostlineServer, params: types.CompletionParams
) -> list[types.CompletionItem]:
    document = server.documents.get(params.text_document.uri)
    if document is None:
        return []
    encoding = server.documents.encoding
    offset = document.offset(convert.position_in(params.position), encoding)
    invoked = params.context is not None and (
        params.context.trigger_kind == types.CompletionTriggerKind.Invoked
    )
    commit = await at_cursor(
        server, document, offset, asked=invoked, timeout_ms=server.settings.completion_ms
    )
    if commit is None:
        return []
    edit = commit.edits[0]
    word = document.text[_word_start(document.text, offset) : offset]
    label = " ".join((word + edit.text).split())
    return [
        types.CompletionItem(
            label=label if len(label) <= _LABEL else label[: _LABEL - 1] + "…",
            kind=types.CompletionItemKind.Snippet,
            detail="Frostline draft",
            filter_text=word + edit.text,
            text_edit=types.TextEdit(convert.range_out(document, edit.span, encoding), edit.text),
            data={"draft": word + edit.text, "language": document.language},
        )
    ]


def _word_start(text: str, offset: int) -> int:
    while offset and (text[offset - 1].isalnum() or text[offset - 1] == "_"):
        offset -= 1
    return offset

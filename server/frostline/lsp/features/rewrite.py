"""Rewrite a selection, fill a body, fill every unfinished body: code actions and commands."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from frostline.context import holes as find
from frostline.context import syntax
from frostline.context.blocks import borders
from frostline.core import blocks
from frostline.core.barrier import Commit, Refusal, Refused
from frostline.core.events import Intent, Rejected, State, Wish
from frostline.core.regions import Hole
from frostline.core.text import Document, Span
from frostline.lsp import convert
from frostline.lsp import extension as ext
from frostline.lsp.driver import Live, refused
from frostline.lsp.server import FrostlineServer, decoded

# How much of a selection a rewrite noises when nobody says: enough to change it, and still it.
STRENGTH = 0.6
_WAIT_MS = 120_000


class Asked(ext.Wire, frozen=True):
    """What a command or a code action carries."""

    uri: str
    range: ext.Range
    version: int | None = None
    intent: ext.IntentName = "rewrite"
    strength: float = STRENGTH
    instruction: str = ""


def planned(document: Document, spans: Sequence[Span], intent: Intent) -> tuple[Hole, ...]:
    """Return the holes that an intent means at these spans; none where it finds nothing to do."""
    if not spans:
        return ()
    if intent is Intent.SKELETON:
        stubs = find.stubs(document, spans[0].start)
        body = None if stubs else find.body(document, spans[0].start)
        return stubs or ((body,) if body else ())
    if intent is Intent.REPAIR:
        errors = syntax.errors(document.text, document.language)
        wanted = [one for one in errors if any(_touches(one, span) for span in spans)] or errors
        return tuple(find.selection(document, one) for one in _apart(document, wanted))
    return tuple(
        find.selection(document, span)
        if len(span) or intent is Intent.REWRITE
        else find.at_cursor(document, span.start)
        for span in spans
    )


def in_blocks(
    document: Document, spans: Sequence[Span], intent: Intent, most: int
) -> tuple[Sequence[Span], Sequence[Span]]:
    """Return what to denoise first, and the later blocks of a rewrite of more than `most` lines."""
    if not _long(document, spans, intent, most):
        return spans, ()
    (span,) = spans
    found = blocks.later(document, blocks.cut(document, span, borders(document, span), most))
    return (found[:1], found[1:]) if found else (spans, ())


def _long(document: Document, spans: Sequence[Span], intent: Intent, most: int) -> bool:
    # Several holes are there to agree with each other: they stay one pass.
    if intent is not Intent.REWRITE or len(spans) != 1 or not most:
        return False
    (span,) = spans
    return blocks.lines(document, span) > most


def register(server: FrostlineServer) -> None:
    """Add these features to the server."""

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(
            code_action_kinds=[types.CodeActionKind.RefactorRewrite], resolve_provider=True
        ),
    )
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.documents.get(params.text_document.uri)
        if document is None or server.driver.barred(document) is not None:
            return []
        return await asyncio.to_thread(_offers, server, document, params)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        asked = decoded(convert.json_values(action.data), Asked)
        result = await _drafted(server, asked)
        if isinstance(result, Refused):
            server.explain(result.message)
            return action
        document, commit = result
        action.edit = convert.workspace_edit(document, commit.edits, server.documents.encoding)
        return action

    for name, intent in _COMMANDS.items():
        server.command(name)(_command(server, intent))


_COMMANDS: dict[str, ext.IntentName] = {
    "frostline.fill": "infill",
    "frostline.rewrite": "rewrite",
    "frostline.body": "skeleton",
    "frostline.repair": "repair",
}


def _command(server: FrostlineServer, intent: ext.IntentName) -> Any:
    async def command(arguments: Any) -> Any:
        given = convert.json_values(arguments)
        asked = decoded({"intent": intent, **(given if isinstance(given, dict) else {})}, Asked)
        return await _run_command(server, asked)

    return command


async def _run_command(server: FrostlineServer, asked: Asked) -> Any:
    """Draft and commit with one edit of the whole (or of each block), for clients that draw no draft.

    The work-done progress is the live sign, and its cancel button rejects the draft.
    """
    document = server.documents.get(asked.uri)
    if document is None:
        return convert.plain(ext.Accepted(refusal=convert.told(Refusal.CLOSED)))
    if asked.version not in (None, document.version):
        server.explain(Refusal.STALE.message)
        return convert.plain(ext.Accepted(refusal=convert.told(Refusal.STALE)))
    if (barred := server.driver.barred(document)) is not None:
        server.explain(barred[1])
        return convert.plain(ext.Accepted(refusal=convert.told(*barred)))
    span = convert.span_in(document, asked.range, server.documents.encoding)
    intent = Intent(asked.intent)
    most = server.settings.block_lines
    spans, later = await asyncio.to_thread(in_blocks, document, [span], intent, most)
    holes = await asyncio.to_thread(planned, document, spans, intent)
    if not holes:
        server.explain(Refusal.NOTHING.message)
        return convert.plain(ext.Accepted(refusal=convert.told(Refusal.NOTHING)))
    strength = asked.strength if intent is Intent.REWRITE else 1.0
    wish = Wish(intent, asked.instruction, strength, converged=True)
    live = server.driver.begin(document, holes, wish, later=later)
    async with _progress(server, live):
        try:
            await live.over.wait()
            while live.following is not None:
                live = live.following
                await live.over.wait()
        except asyncio.CancelledError:
            if not live.session.state.ended:
                server.driver.feed(live, Rejected())
            raise
    if live.session.state is State.COMMITTED:
        return convert.plain(ext.Accepted())
    unsound = Refusal.UNSOUND if live.session.unsound else Refusal.UNSTABLE
    refusal = live.session.refusal or unsound
    told = convert.told(refusal, live.message)
    server.explain(told.message)
    return convert.plain(ext.Accepted(refusal=told))


@contextlib.asynccontextmanager
async def _progress(server: FrostlineServer, live: Live) -> Any:
    """Show that something goes on, where the client can; its cancel rejects the draft."""
    if not server.can("window", "work_done_progress"):
        yield
        return
    token = f"frostline-{uuid.uuid4().hex}"
    progress = server.work_done_progress
    await progress.create_async(token)
    progress.begin(
        token, types.WorkDoneProgressBegin(title="Frostline", message="denoising", cancellable=True)
    )
    cancelled = progress.tokens[token]

    def cancel(_: Any) -> None:
        last = live.last
        if cancelled.cancelled() and not last.session.state.ended:
            server.driver.feed(last, Rejected())

    cancelled.add_done_callback(cancel)
    try:
        yield
    finally:
        progress.end(token, types.WorkDoneProgressEnd(message=live.last.session.state.value))
        # pygls never forgets a token by itself.
        progress.tokens.pop(token, None)


async def _drafted(server: FrostlineServer, asked: Asked) -> tuple[Document, Commit] | Refused:
    document = server.documents.get(asked.uri)
    if document is None:
        return refused(Refusal.CLOSED)
    if asked.version not in (None, document.version):
        return refused(Refusal.STALE)
    span = convert.span_in(document, asked.range, server.documents.encoding)
    holes = await asyncio.to_thread(planned, document, [span], Intent(asked.intent))
    if not holes:
        return refused(Refusal.NOTHING)
    strength = asked.strength if asked.intent == "rewrite" else 1.0
    wish = Wish(Intent(asked.intent), asked.instruction, strength)
    result = await server.driver.draft(document, holes, wish, _WAIT_MS)
    return result if isinstance(result, Refused) else (document, result[0])


def _offers(
    server: FrostlineServer, document: Document, params: types.CodeActionParams
) -> list[types.CodeAction]:
    encoding = server.documents.encoding
    span = convert.span_in(document, params.range, encoding)
    offers: list[tuple[str, ext.IntentName]] = []
    if len(span):
        offers.append(("Rewrite the selection (Frostline)", "rewrite"))
    stubs = planned(document, [span], Intent.SKELETON)
    if len(stubs) > 1:
        offers.append((f"Fill {len(stubs)} unfinished bodies (Frostline)", "skeleton"))
    elif stubs:
        offers.append(("Fill the function body (Frostline)", "skeleton"))
    if any(_touches(one, span) for one in syntax.errors(document.text, document.language)):
        offers.append(("Repair the syntax here (Frostline)", "repair"))
    return [_action(server, document, span, title, intent) for title, intent in offers]


def _action(
    server: FrostlineServer, document: Document, span: Span, title: str, intent: ext.IntentName
) -> types.CodeAction:
    asked = Asked(
        uri=document.uri,
        range=convert.ext_range(document, span, server.documents.encoding),
        version=document.version,
        intent=intent,
    )
    action = types.CodeAction(
        title=title,
        kind=types.CodeActionKind.RefactorRewrite,
        tags=[types.CodeActionTag.LlmGenerated],
    )
    # A resolved action is one edit, so a rewrite in blocks is a command.
    by_blocks = _long(document, [span], Intent(intent), server.settings.block_lines)
    if server.can("text_document", "code_action", "resolve_support") and not by_blocks:
        action.data = convert.plain(asked)
    else:
        command = next(name for name, one in _COMMANDS.items() if one == intent)
        action.command = types.Command(title, command, arguments=[convert.plain(asked)])
    return action


def _touches(first: Span, second: Span) -> bool:
    return first.start <= second.end and second.start <= first.end


def _apart(document: Document, spans: Sequence[Span]) -> list[Span]:
    """Return the spans with those on shared lines made one, so that their holes do not touch."""
    result: list[Span] = []
    for span in sorted(spans):
        line = document.line_at(span.start)
        if result and document.line_at(result[-1].end) >= line - 1:
            result[-1] = Span(result[-1].start, max(result[-1].end, span.end))
        else:
            result.append(span)
    return result

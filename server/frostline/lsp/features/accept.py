"""Live sessions: begin, accept, applied, pin, refine, reject, and the preview of a draft."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lsprotocol import types

from frostline.core import events, provisional
from frostline.core.barrier import Commit, Refusal, Refused
from frostline.core.partial import Scope
from frostline.core.session import Session, UnexpectedEvent
from frostline.core.text import Span, apply
from frostline.lsp import convert
from frostline.lsp import extension as ext
from frostline.lsp.features.rewrite import in_blocks, planned
from frostline.lsp.server import PREVIEW_SCHEME, FrostlineServer, decoded

# Edits that can be asked for again by their key.
_REMEMBERED = 256


def register(server: FrostlineServer) -> None:
    """Add these features to the server."""

    @server.feature(ext.BEGIN)
    async def begin(params: Any) -> Any:
        return convert.plain(_begin(server, decoded(params, ext.Begin)))

    @server.feature(ext.ACCEPT)
    async def accept(params: Any) -> Any:
        return convert.plain(await _accept(server, decoded(params, ext.Accept)))

    @server.feature(ext.APPLIED)
    async def applied(params: Any) -> None:
        asked = decoded(params, ext.Applied)
        session = server.driver.session(asked.session)
        if session is not None and session.state is not events.State.DRAFTING:
            server.driver.happened(asked.session, events.Applied(asked.applied))

    @server.feature(ext.PIN)
    async def pin(params: Any) -> Any:
        asked = decoded(params, ext.Pin)
        start, end = sorted(asked.span)
        return _happened(
            server, asked.session, events.PinnedDown(asked.hole, Span(max(start, 0), end))
        )

    @server.feature(ext.REFINE)
    async def refine(params: Any) -> Any:
        return _refine(server, decoded(params, ext.Refine))

    @server.feature(ext.REJECT)
    async def reject(params: Any) -> Any:
        return _happened(server, decoded(params, ext.Reject).session, events.Rejected())

    @server.feature(ext.BACK)
    async def back(params: Any) -> Any:
        asked = decoded(params, ext.Back)
        return _happened(server, asked.session, events.WentBack(asked.by))

    @server.feature("workspace/textDocumentContent")
    async def preview(params: Any) -> types.TextDocumentContentResult:
        return types.TextDocumentContentResult(text=preview_text(server, params.uri))

    @server.command("frostline.accept")
    async def accept_command(session: str) -> Any:
        refused = await server.driver.commit(session)
        if refused is not None:
            server.explain(refused.message)
        return convert.plain(
            ext.Accepted(refusal=None if refused is None else convert.refused(refused))
        )

    @server.command("frostline.retry")
    async def retry_command(session: str) -> Any:
        return _refine(server, ext.Refine(session=session))

    @server.command("frostline.reject")
    async def reject_command(session: str) -> Any:
        return _happened(server, session, events.Rejected())


def _refine(server: FrostlineServer, asked: ext.Refine) -> Any:
    session = server.driver.session(asked.session)
    if session is None:
        return convert.plain(ext.Accepted(refusal=convert.told(Refusal.UNKNOWN)))
    wish = replace(
        session.wish,
        instruction=_or(asked.instruction, session.wish.instruction),
        strength=_or(asked.strength, session.wish.strength),
        seed=_or(asked.seed, session.wish.seed + 1),
    )
    return _happened(server, asked.session, events.Refined(wish))


def _begin(server: FrostlineServer, begin: ext.Begin) -> ext.Begun:
    document = server.documents.get(begin.text_document.uri)
    if document is None:
        return ext.Begun(refusal=convert.told(Refusal.CLOSED))
    if begin.text_document.version not in (None, document.version):
        return ext.Begun(refusal=convert.told(Refusal.STALE))
    if (barred := server.driver.barred(document)) is not None:
        return ext.Begun(refusal=convert.told(*barred))
    encoding = server.documents.encoding
    places = [convert.span_in(document, hole.range, encoding) for hole in begin.holes]
    intent = events.Intent(begin.intent)
    spans, later = in_blocks(document, places, intent, server.settings.block_lines)
    holes = planned(document, spans, intent)
    if not holes:
        return ext.Begun(refusal=convert.told(Refusal.NOTHING))
    try:
        live = server.driver.begin(
            document, holes, convert.wish_in(begin), budget_ms=begin.budget_ms, later=later
        )
    except ValueError as error:
        return ext.Begun(refusal=convert.told(Refusal.OVERLAP, f"These holes overlap: {error}."))
    return convert.begun_out(live.session, encoding)


async def _accept(server: FrostlineServer, asked: ext.Accept) -> ext.Accepted:
    result = await server.driver.accept(
        asked.session, Scope(asked.scope), asked.hole, anyway=asked.anyway, key=asked.key
    )
    session = server.driver.session(asked.session)
    if isinstance(result, Refused) or session is None:
        unknown = convert.told(Refusal.UNKNOWN)
        return ext.Accepted(
            refusal=convert.refused(result) if isinstance(result, Refused) else unknown
        )
    return ext.Accepted(edit=_edit(server, session, result))


def _edit(server: FrostlineServer, session: Session, commit: Commit) -> Any:
    """Return a commit as a WorkspaceEdit; asked again, the very same, whatever the text is by then."""
    if commit.key not in server.told_edits:
        edits = [provisional.smallest(session.document, edit) for edit in commit.edits]
        edit = convert.workspace_edit(session.document, edits, server.documents.encoding)
        server.told_edits[commit.key] = server.protocol._converter.unstructure(edit)
        while len(server.told_edits) > _REMEMBERED:
            del server.told_edits[next(iter(server.told_edits))]
    return server.told_edits[commit.key]


def _happened(server: FrostlineServer, name: str, event: events.Event) -> Any:
    try:
        session = server.driver.happened(name, event)
    except UnexpectedEvent:
        session = None
    if session is None:
        return convert.plain(ext.Accepted(refusal=convert.told(Refusal.UNKNOWN)))
    return convert.plain(ext.Accepted())


def preview_text(server: FrostlineServer, uri: str) -> str:
    """Return the document of a session with its draft in place, for `frostline:/SESSION/NAME`.

    An unknown session gives an empty text: the virtual document of a draft that is gone.
    """
    name = uri.removeprefix(f"{PREVIEW_SCHEME}:").lstrip("/").partition("/")[0]
    session = server.driver.session(name)
    if session is None:
        return ""
    if not session.drafts:
        return session.document.text
    edits = provisional.edits_for(session.document, session.regions, session.drafts)
    return apply(session.document.text, edits)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value

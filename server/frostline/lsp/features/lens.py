"""Accept, retry and reject above a live draft, for clients that show code lenses and no drafts."""

from __future__ import annotations

from lsprotocol import types

from frostline.core.events import State
from frostline.core.session import Session
from frostline.lsp import convert
from frostline.lsp.server import FrostlineServer


def register(server: FrostlineServer) -> None:
    """Add this feature to the server."""

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions())
    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        live = server.driver.live_on(params.text_document.uri)
        return [] if live is None else _lenses(server, live.session)


def _lenses(server: FrostlineServer, session: Session) -> list[types.CodeLens]:
    if session.state not in (State.DRAFTING, State.READY):
        return []
    titles = {"frostline.reject": "Reject"}
    if session.state is State.READY:
        accept = "Accept though it does not parse" if session.unsound else "Accept the draft"
        titles = {"frostline.accept": accept, "frostline.retry": "Retry", **titles}
    encoding = server.documents.encoding
    place = convert.range_out(session.document, session.regions.holes[0].span, encoding)
    return [
        types.CodeLens(place, types.Command(title, command, arguments=[session.id]))
        for command, title in titles.items()
    ]

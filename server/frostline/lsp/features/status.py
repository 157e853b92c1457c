"""Worker status, settings, and the end of the server."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from frostline.lsp import convert
from frostline.lsp import extension as ext
from frostline.lsp.server import FrostlineServer


def register(server: FrostlineServer) -> None:
    """Add these features to the server."""

    @server.feature(ext.STATUS)
    async def status(_: Any) -> Any:
        return convert.plain(convert.status_out(server.status))

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configured(params: types.DidChangeConfigurationParams) -> None:
        server.change_settings(params.settings)

    @server.feature(types.SHUTDOWN)
    async def shutdown(_: None) -> None:
        await server.close()

    @server.command("frostline.status")
    async def status_command() -> Any:
        return convert.plain(convert.status_out(server.status))

    @server.command("frostline.load")
    async def load() -> None:
        await server.worker().load()

    @server.command("frostline.unload")
    async def unload() -> None:
        await server.worker().unload()

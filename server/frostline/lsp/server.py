"""The language server: pygls, our documents, and the features.

pygls reads and writes the wire and routes; its own copy of documents is not used (see
`documents.py`). Every handler that waits is async, so a cancel reaches it, and everything that
changes documents runs at once, in the order in which it arrived.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs
import msgspec
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method

from frostline import __version__
from frostline.config import Settings
from frostline.context.exclude import Exclusions
from frostline.core import events
from frostline.core.session import Session
from frostline.core.text import Document, Encoding, TextEdit
from frostline.errors import BadSetting
from frostline.lsp import convert
from frostline.lsp import extension as ext
from frostline.lsp.documents import Documents
from frostline.lsp.driver import Driver
from frostline.lsp.route import Routed
from frostline.wire import messages as wire
from frostline.wire.client import WorkerClient, WorkerFace
from frostline.wire.scripted import Script, ScriptedWorker, read_script

logger = logging.getLogger(__name__)

WorkerFactory = Callable[[Settings, Callable[[wire.Status], None]], WorkerFace]
PREVIEW_SCHEME = "frostline"


@attrs.define
class RawRequest:
    """A request whose parameters stay JSON: ours, and those that clients extend."""

    id: int | str
    method: str
    jsonrpc: str
    params: Any = None


@attrs.define
class RawNotification:
    """A notification whose parameters stay JSON."""

    method: str
    jsonrpc: str
    params: Any = None


# Requests whose extra fields lsprotocol would drop, and notifications of plugins that were written
# for another server.
_RAW_REQUESTS = {
    *(ext.BEGIN, ext.ACCEPT, ext.PIN, ext.REFINE, ext.REJECT, ext.BACK),
    types.TEXT_DOCUMENT_INLINE_COMPLETION,
}
_RAW_NOTIFICATIONS = {
    ext.APPLIED,
    "textDocument/didShowCompletion",
    "textDocument/didPartiallyAcceptCompletion",
    "textDocument/didFocus",
}


class Protocol(LanguageServerProtocol):
    """pygls' protocol with our documents, and raw parameters where they are ours to read."""

    _server: FrostlineServer

    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        if method in _RAW_REQUESTS:
            return RawRequest
        if method in _RAW_NOTIFICATIONS:
            return RawNotification
        return super().get_message_type(method)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return the typed message; a request that cannot be read is answered here and dropped."""
        wants_answer = "id" in data and "method" in data
        try:
            message = super().structure_message(data)
            if not wants_answer or hasattr(message, "id"):
                return message
            # A notification that somebody sent as a request, and waits for.
            error: JsonRpcException = JsonRpcInvalidRequest()
        except JsonRpcException as unreadable:
            logger.warning("unreadable message %s: %s", data.get("method"), unreadable)
            error = JsonRpcInvalidParams()
        if wants_answer:
            self._send_response(data["id"], error=error.to_response_error())
        return RawNotification("$/unreadable", self.VERSION)

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[Any, Any, types.InitializeResult]:
        self._server.initialized_with(params)
        result = yield from super().lsp_initialize(params)
        capabilities = result.capabilities
        encoding = capabilities.position_encoding or types.PositionEncodingKind.Utf16
        self._server.documents.encoding = Encoding(encoding)
        capabilities.experimental = {"frostline": {"version": ext.VERSION}}
        if capabilities.workspace is not None:
            capabilities.workspace.text_document_content = types.TextDocumentContentOptions(
                schemes=[PREVIEW_SCHEME]
            )
        return result

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        self._server.driver.document_changed(
            *self._server.documents.opened(item.uri, item.version, item.language_id, item.text)
        )

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        changed = self._server.documents.changed(
            params.text_document.uri,
            params.text_document.version,
            convert.changes_in(params.content_changes),
        )
        if changed is not None:
            self._server.driver.document_changed(*changed)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self._server.documents.closed(params.text_document.uri)
        self._server.driver.document_closed(params.text_document.uri)


class FrostlineServer(LanguageServer):
    """One editor's server.

    Attributes:
        settings: as they are now.
        documents: open documents.
        driver: the sessions.
        status: what was last heard of the worker.
        told_edits: edits that clients were given, by the keys of their commits.
        extended: whether the client draws live drafts (`frostline/*`).
    """

    protocol: Protocol

    def __init__(
        self,
        settings: Settings,
        worker: WorkerFactory | None = None,
        fixed: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(
            "frostline",
            __version__,
            protocol_cls=Protocol,
            converter_factory=default_converter,
        )
        self.settings = settings
        self._fixed = dict(fixed or {})
        self.documents = Documents()
        self.extended = False
        self.told_edits: dict[str, Any] = {}
        self._factory = worker or _worker_for
        self._worker: WorkerFace | None = None
        self._roots: tuple[str, ...] = ()
        self.status = wire.Status("off", model=settings.model)
        self._tasks: set[asyncio.Task[None]] = set()
        self.driver = Driver(
            self.documents,
            self.worker,
            _ToEditor(self),
            lambda: self.settings,
            lambda: self._exclusions,
        )

    # --- worker and settings --------------------------------------------------------------------

    def worker(self) -> WorkerFace:
        """Return the worker of the present settings; nothing is sent by this."""
        if self._worker is None:
            self._worker = self._factory(self.settings, self.worker_status)
            if self.settings.peer:
                self._worker = Routed(self._worker, self._peer(), self.settings.peer, self._log)
        return self._worker

    def _peer(self) -> WorkerFace:
        """Return the worker of the model that is asked for what the first one cannot do."""
        settings = replace(self.settings, model=self.settings.peer)
        return self._factory(settings, lambda _: None)

    def _log(self, sentence: str) -> None:
        """Tell the editor's log a sentence."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Info, sentence))

    def worker_status(self, status: wire.Status) -> None:
        """Pass on what the worker says of itself."""
        self.status = status
        if self.extended:
            self.protocol.notify(ext.STATUS, convert.plain(convert.status_out(status)))

    def change_settings(self, values: object) -> None:
        """Take settings from the editor; wrong ones are explained and change nothing."""
        given = convert.json_object(values)
        given = convert.json_object(given.get("frostline")) or given
        try:
            settings = self.settings.updated({**given, **self._fixed}, by_user=False)
        except BadSetting as error:
            self.explain(str(error), types.MessageType.Warning)
            return
        if settings == self.settings:
            return
        before, self.settings = self.settings, settings
        self.__dict__.pop("_exclusions", None)
        if _another_worker(before, settings) and self._worker is not None:
            old, self._worker = self._worker, None
            self.background(old.close())
        if before.enabled and not settings.enabled:
            for document in self.documents:
                self.driver.document_closed(document.uri)

    @cached_property
    def _exclusions(self) -> Exclusions:
        return Exclusions.of(self.settings, self._roots)

    def initialized_with(self, params: types.InitializeParams) -> None:
        """Take what the client says of itself."""
        experimental = params.capabilities.experimental
        self.extended = _declares_extension(experimental)
        folders = [folder.uri for folder in params.workspace_folders or ()]
        folders = folders or ([params.root_uri] if params.root_uri else [])
        self._roots = tuple(path for uri in folders if (path := _path(uri)))
        self.__dict__.pop("_exclusions", None)
        options = params.initialization_options
        self.change_settings(options)

    # --- to the editor --------------------------------------------------------------------------

    def explain(self, sentence: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show the user one sentence."""
        self.window_show_message(types.ShowMessageParams(kind, sentence))

    def background(self, work: Any) -> None:
        """Run a coroutine beside everything else, and keep hold of it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def can(self, *path: str) -> bool:
        """Return whether the client declares a capability, by its attribute path."""
        value: Any = self.client_capabilities
        for name in path:
            value = getattr(value, name, None)
        return bool(value)

    async def close(self) -> None:
        """End the sessions and let go of the worker."""
        await self.driver.close()
        if self._worker is not None:
            await self._worker.close()


class _ToEditor:
    """The driver's view of the editor."""

    def __init__(self, server: FrostlineServer) -> None:
        self._server = server

    def provisional(self, session: Session, show: events.Show) -> None:
        server = self._server
        if not server.extended:
            return
        encoding = server.documents.encoding
        holes = tuple(
            ext.HoleShown(
                range=convert.ext_range(session.document, hole.span, encoding),
                pieces=convert.pieces_out(draft),
            )
            for hole, draft in zip(session.regions.holes, show.drafts, strict=True)
        )
        message = ext.Provisional(
            session=session.id,
            uri=session.document.uri,
            version=session.document.version,
            step=show.step,
            steps=show.steps,
            holes=holes,
        )
        server.protocol.notify(ext.PROVISIONAL, convert.plain(message))

    def state(
        self,
        session: Session,
        tell: events.Tell,
        metrics: dict[str, Any] | None,
        following: Session | None,
    ) -> None:
        if self._server.can("workspace", "code_lens", "refresh_support"):
            self._server.background(self._server.workspace_code_lens_refresh_async(None))
        if self._server.can("workspace", "text_document_content"):
            uri = f"{PREVIEW_SCHEME}:/{session.id}/draft"
            refresh = types.TextDocumentContentRefreshParams(uri)
            self._server.background(
                self._server.workspace_text_document_content_refresh_async(refresh)
            )
        if not self._server.extended:
            return
        refusal = None if tell.refusal is None else convert.told(tell.refusal, tell.message)
        encoding = self._server.documents.encoding
        message = ext.StateTold(
            session=session.id,
            state=tell.state.value,
            refusal=refusal,
            next=None if following is None else convert.begun_out(following, encoding),
            metrics=metrics,
        )
        self._server.protocol.notify(ext.STATE, convert.plain(message))

    async def approves(self, session: Session, risk: str) -> bool:
        choices = [types.MessageActionItem("Apply"), types.MessageActionItem("Not now")]
        params = types.ShowMessageRequestParams(
            types.MessageType.Warning, f"Apply the draft? {risk}", actions=choices
        )
        with contextlib.suppress(JsonRpcException, asyncio.CancelledError):
            chosen = await self._server.window_show_message_request_async(params)
            return chosen is not None and chosen.title == "Apply"
        return False

    async def apply(self, document: Document, edits: Sequence[TextEdit]) -> bool:
        edit = convert.workspace_edit(document, edits, self._server.documents.encoding)
        with contextlib.suppress(JsonRpcException, asyncio.CancelledError):
            result = await self._server.workspace_apply_edit_async(
                types.ApplyWorkspaceEditParams(edit, label="Frostline")
            )
            return bool(result.applied)
        return False


def decoded(params: object, kind: type[ext.Wire]) -> Any:
    """Return the parameters of one of our messages.

    Raises:
        JsonRpcInvalidParams: they do not fit, with the place that does not.
    """
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        raise JsonRpcInvalidParams(message=str(error)) from error


def _worker_for(settings: Settings, on_status: Callable[[wire.Status], None]) -> WorkerFace:
    kind, _, rest = settings.worker.partition(":")
    if kind == "scripted":
        recording = read_script(Path(rest))
        scripts = [Script(run, lost_after=recording.lost_after) for run in recording.runs]
        return ScriptedWorker(scripts, on_status, pause=recording.pause_ms / 1000)
    if kind:
        raise BadSetting("setting 'worker' must be empty or scripted:FILE")
    return WorkerClient(settings, on_status)


def _another_worker(before: Settings, after: Settings) -> bool:
    names = ("model", "peer", "device", "threads", "worker", "idle_s")
    return any(getattr(before, name) != getattr(after, name) for name in names)


def _declares_extension(experimental: Any) -> bool:
    offered = convert.json_object(experimental).get("frostline")
    return convert.json_object(offered).get("version") == ext.VERSION


def _path(uri: str) -> str | None:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else None


def build(
    settings: Settings,
    worker: WorkerFactory | None = None,
    fixed: Mapping[str, object] | None = None,
) -> FrostlineServer:
    """Return a server with all features; what the editor sets does not change `fixed`."""
    from frostline.lsp.features import accept, complete, inline, lens, rewrite, status

    server = FrostlineServer(settings, worker, fixed)
    for feature in (accept, complete, inline, lens, rewrite, status):
        feature.register(server)
    return server


def run(
    settings: Settings, fixed: Mapping[str, object] | None = None, log: Path | None = None
) -> None:
    """Serve one editor on standard input and output until it says exit.

    Args:
        fixed: settings of the command line, which the editor's do not change.
        log: file for what goes on; without one, what went wrong is written to standard error.
    """
    handler = logging.FileHandler(log) if log else logging.StreamHandler(sys.stderr)
    level = logging.INFO if log else logging.WARNING
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(handlers=[handler], level=level, format=form)
    # pygls logs whole messages, which hold the user's text.
    logging.getLogger("pygls").setLevel(logging.ERROR)
    server = build(settings, fixed=fixed)
    server.start_io()

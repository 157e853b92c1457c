"""A small editor: it opens files, watches drafts, and applies edits to its own text.

`demo`, `fill` and `rewrite` go through the same door as any editor, so what they show is what the
server does. The tests use it too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient
from pygls.protocol import LanguageServerProtocol, default_converter

from frostline import __version__
from frostline.config import Settings
from frostline.core.text import Document, Encoding, Position, Span, TextEdit
from frostline.errors import FrostlineError
from frostline.lsp import convert
from frostline.lsp import extension as ext
from frostline.lsp.server import RawNotification

_STOPPED = "the language server stopped; run it again"
Watcher = Callable[[str, dict[str, Any]], None]


class _Protocol(LanguageServerProtocol):
    """pygls' client protocol, with our notifications left as JSON."""

    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        if method in (ext.PROVISIONAL, ext.STATE):
            return RawNotification
        if method in (
            types.TEXT_DOCUMENT_INLINE_COMPLETION,
            types.WORKSPACE_DID_CHANGE_CONFIGURATION,
        ):
            return None  # sent as JSON values, with whatever extras a client has
        return super().get_message_type(method)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return the typed message; status is both a request and a notification."""
        if data.get("method") == ext.STATUS and "id" not in data:
            return RawNotification(ext.STATUS, self.VERSION, data.get("params"))
        return super().structure_message(data)


@dataclass
class Buffer:
    """An open file of this editor.

    Attributes:
        document: the text now.
        undo: the texts before each edit, one for each undo step.
    """

    document: Document
    undo: list[str] = field(default_factory=list)


class EditorClient:
    """A client of one server process.

    Attributes:
        buffers: open files by URI.
        heard: every `frostline/*` notification, in order, as (method, params).
        asked: every request of the server, in order, as (method, params).
        messages: what the server showed the user; `questions` what it asked.
        choose: the title of the answer to every question; None dismisses it.
        lies: whether it says yes to edits and makes none, as some editors do.
        patience_s: how long an answer or a notification is waited for; None waits for ever, as a
            large model takes what it takes.
    """

    def __init__(
        self,
        *,
        extended: bool = True,
        encoding: Encoding = Encoding.UTF32,
        patience_s: float | None = None,
        root: Path | None = None,
    ) -> None:
        self.extended = extended
        self.patience_s = patience_s
        self.encoding = encoding
        self.buffers: dict[str, Buffer] = {}
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[tuple[str, Any]] = []
        self.messages: list[str] = []
        self.questions: list[str] = []
        self.choose: str | None = None
        self.lies = False
        self.root = root
        self.watch: Watcher = lambda method, params: None
        self.initialized: types.InitializeResult | None = None
        self._news = asyncio.Condition()
        self._client = LanguageClient(
            "frostline-cli",
            __version__,
            protocol_cls=_Protocol,
            converter_factory=default_converter,
        )
        for method in (ext.PROVISIONAL, ext.STATE, ext.STATUS):
            self._client.feature(method)(self._listener(method))
        self._client.feature(types.WORKSPACE_APPLY_EDIT)(_plain_function(self._apply_asked))
        self._client.feature(types.WINDOW_SHOW_MESSAGE)(_plain_function(self._message))
        self._client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(_plain_function(self._asked))
        for method in (types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.PROGRESS):
            self._client.feature(method)(_plain_function(self._progress))

    # --- the server -----------------------------------------------------------------------------

    async def start(self, settings: Settings | None = None, *command: str) -> None:
        """Start a server and greet it."""
        # -P: what lies in the user's folder is text, never a module of ours.
        command = command or (sys.executable, "-P", "-m", "frostline", "lsp")
        await self._client.start_io(*command, env=dict(os.environ), limit=1 << 26)
        capabilities = types.ClientCapabilities(
            general=types.GeneralClientCapabilities(
                position_encodings=[types.PositionEncodingKind(self.encoding.value)]
            ),
            workspace=types.WorkspaceClientCapabilities(apply_edit=True),
            window=types.WindowClientCapabilities(work_done_progress=True),
            text_document=types.TextDocumentClientCapabilities(
                code_action=types.CodeActionClientCapabilities(
                    resolve_support=types.ClientCodeActionResolveOptions(properties=["edit"])
                )
            ),
            experimental={"frostline": {"version": ext.VERSION}} if self.extended else None,
        )
        self.initialized = await self.request(
            types.INITIALIZE,
            types.InitializeParams(
                process_id=os.getpid(),
                capabilities=capabilities,
                workspace_folders=[types.WorkspaceFolder(self.root.as_uri(), self.root.name)]
                if self.root
                else None,
                initialization_options=asdict(settings) if settings else {},
            ),
        )
        self._client.initialized(types.InitializedParams())

    async def stop(self) -> None:
        """Say goodbye as LSP has it."""
        with contextlib.suppress(FrostlineError):
            await self.request(types.SHUTDOWN, None)
            self._client.exit(None)
        await self._client.stop()  # type: ignore[no-untyped-call]

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The server's process."""
        process = self._client._server
        if process is None:
            raise FrostlineError("the server was not started")
        return process

    async def request(self, method: str, params: object) -> Any:
        """Return the answer to a request, as JSON values or lsprotocol types.

        Raises:
            FrostlineError: the server ended, or answered with an error.
        """
        if self.process.returncode is not None:
            raise FrostlineError(_STOPPED)
        try:
            async with asyncio.timeout(self.patience_s):
                return await self._client.protocol.send_request_async(method, params)
        except JsonRpcException as error:
            raise FrostlineError(f"the language server refused: {error.message}") from error
        except (RuntimeError, ConnectionError) as error:
            # How pygls says that the process ended.
            raise FrostlineError(_STOPPED) from error

    async def extension(self, method: str, params: object) -> dict[str, Any]:
        """Return the answer to one of our requests, or to a command, as JSON values."""
        body = convert.plain(params) if isinstance(params, ext.Wire) else params
        answer = await self.request(method, body)
        return convert.json_values(answer) or {}

    async def command(self, name: str, *arguments: object) -> dict[str, Any]:
        """Return the answer to a command as JSON values."""
        params = types.ExecuteCommandParams(name, list(arguments))
        return await self.extension(types.WORKSPACE_EXECUTE_COMMAND, params)

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._client.protocol.notify(method, params)

    # --- files ----------------------------------------------------------------------------------

    def open(self, uri: str, language: str, text: str) -> Document:
        """Open a file with this text."""
        document = Document.of(uri, 1, language, text)
        self.buffers[uri] = Buffer(document)
        item = types.TextDocumentItem(uri, language, 1, text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return document

    def close(self, uri: str) -> None:
        """Close a file."""
        del self.buffers[uri]
        identifier = types.TextDocumentIdentifier(uri)
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))

    def type(self, uri: str, span: Span, text: str) -> Document:
        """Replace a span as a user would, and tell the server."""
        return self._edit(uri, [TextEdit(span, text)])

    def apply(self, edit: dict[str, Any]) -> Document:
        """Make a WorkspaceEdit of one document in one undo step, and tell the server.

        Raises:
            FrostlineError: it is for another version than the one that is here.
        """
        (change,) = edit["documentChanges"]
        uri = change["textDocument"]["uri"]
        document = self.buffers[uri].document
        if change["textDocument"]["version"] != document.version:
            raise FrostlineError("the edit is for another version of the file")
        return self._edit(uri, [self._edit_in(document, one) for one in change["edits"]])

    def undo(self, uri: str) -> Document:
        """Take the last undo step back, and tell the server."""
        buffer = self.buffers[uri]
        text = buffer.undo.pop()
        buffer.document = Document.of(
            uri, buffer.document.version + 1, buffer.document.language, text
        )
        self._changed(buffer.document, [types.TextDocumentContentChangeWholeDocument(text)])
        return buffer.document

    def _edit(self, uri: str, edits: list[TextEdit]) -> Document:
        buffer = self.buffers[uri]
        before = buffer.document
        buffer.undo.append(before.text)
        buffer.document = before.replaced(before.version + 1, edits)
        ordered = sorted(edits, key=lambda edit: edit.span, reverse=True)
        changes = [
            types.TextDocumentContentChangePartial(self._range(before, edit.span), edit.text)
            for edit in ordered
        ]
        self._changed(buffer.document, changes)
        return buffer.document

    def _changed(self, document: Document, changes: list[Any]) -> None:
        identifier = types.VersionedTextDocumentIdentifier(document.version, document.uri)
        self._client.text_document_did_change(
            types.DidChangeTextDocumentParams(identifier, changes)
        )

    def _edit_in(self, document: Document, edit: dict[str, Any]) -> TextEdit:
        ends = (
            document.offset(Position(end["line"], end["character"]), self.encoding)
            for end in (edit["range"]["start"], edit["range"]["end"])
        )
        return TextEdit(Span(*ends), edit["newText"])

    def _range(self, document: Document, span: Span) -> types.Range:
        start, end = (document.position(at, self.encoding) for at in (span.start, span.end))
        return types.Range(
            types.Position(start.line, start.character), types.Position(end.line, end.character)
        )

    def ext_range(self, document: Document, span: Span) -> ext.Range:
        """Return the extension's range of a span."""
        start, end = (document.position(at, self.encoding) for at in (span.start, span.end))
        return ext.Range(
            ext.Position(start.line, start.character), ext.Position(end.line, end.character)
        )

    # --- sessions -------------------------------------------------------------------------------

    async def begin(self, document: Document, *spans: Span, **options: Any) -> dict[str, Any]:
        """Ask for a live session on these spans; return the answer."""
        holes = tuple(ext.HoleAsked(range=self.ext_range(document, span)) for span in spans)
        identifier = ext.DocumentId(uri=document.uri, version=document.version)
        return await self.extension(
            ext.BEGIN, ext.Begin(text_document=identifier, holes=holes, **options)
        )

    async def state(self, session: str, *states: str) -> dict[str, Any]:
        """Wait until the session was in one of `states`, and return what was told."""
        return await self.told(
            ext.STATE, lambda told: told["session"] == session and told["state"] in states
        )

    async def told(self, method: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a notification that fits, or return one that was already heard.

        Raises:
            FrostlineError: the server ended first.
        """
        async with asyncio.timeout(self.patience_s), self._news:
            while True:
                for name, params in self.heard:
                    if name == method and wanted(params):
                        return params
                if self.process.returncode is not None:
                    raise FrostlineError(_STOPPED)
                try:
                    async with asyncio.timeout(1):
                        await self._news.wait()
                except TimeoutError:
                    continue

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that the server says makes `condition` true."""
        async with asyncio.timeout(self.patience_s), self._news:
            await self._news.wait_for(condition)

    async def settled(self, session: str) -> str:
        """Wait until a session is not drafting, also after what was just sent; return its state."""
        # The server answers in order, so after this it has seen everything from before.
        await self.extension(ext.STATUS, {})
        states = [
            params["state"]
            for method, params in self.heard
            if method == ext.STATE and params["session"] == session
        ]
        if states and states[-1] != "drafting":
            return str(states[-1])
        count = len(self.heard)
        told = await self.told(
            ext.STATE,
            lambda told: (
                told["session"] == session
                and told["state"] != "drafting"
                and (ext.STATE, told) in self.heard[count:]
            ),
        )
        return str(told["state"])

    def shown(self, session: str) -> list[dict[str, Any]]:
        """Return the provisional drafts of a session that were heard so far."""
        return [
            params
            for method, params in self.heard
            if method == ext.PROVISIONAL and params["session"] == session
        ]

    async def accept(self, session: str, **options: Any) -> dict[str, Any]:
        """Ask for a session's edit; return the answer."""
        return await self.extension(ext.ACCEPT, ext.Accept(session=session, **options))

    def applied(self, session: str, document: Document) -> None:
        """Tell the server that its edit was made."""
        self.notify(
            ext.APPLIED, convert.plain(ext.Applied(session=session, version=document.version))
        )

    # --- what the server says -------------------------------------------------------------------

    def _listener(self, method: str) -> Callable[[Any], Any]:
        async def heard(params: Any) -> None:
            self.heard.append((method, params))
            self.watch(method, params)
            async with self._news:
                self._news.notify_all()

        return heard

    async def _apply_asked(
        self, params: types.ApplyWorkspaceEditParams
    ) -> types.ApplyWorkspaceEditResult:
        self.asked.append((types.WORKSPACE_APPLY_EDIT, params))
        if self.lies:
            return types.ApplyWorkspaceEditResult(applied=True)
        edit = self._client.protocol._converter.unstructure(params.edit)
        try:
            self.apply(json.loads(json.dumps(edit)))
        except FrostlineError as error:
            return types.ApplyWorkspaceEditResult(applied=False, failure_reason=str(error))
        async with self._news:
            self._news.notify_all()
        return types.ApplyWorkspaceEditResult(applied=True)

    async def _asked(
        self, params: types.ShowMessageRequestParams
    ) -> types.MessageActionItem | None:
        self.questions.append(params.message)
        async with self._news:
            self._news.notify_all()
        return next((one for one in params.actions or () if one.title == self.choose), None)

    async def _message(self, params: types.ShowMessageParams) -> None:
        self.messages.append(params.message)
        async with self._news:
            self._news.notify_all()

    async def _progress(self, params: Any) -> None:
        self.asked.append(("progress", params))


@asynccontextmanager
async def editor(
    settings: Settings | None = None, *command: str, **options: Any
) -> AsyncIterator[EditorClient]:
    """Give a client with a running server, stopped at the end."""
    client = EditorClient(**options)
    await client.start(settings, *command)
    try:
        yield client
    finally:
        if client.process.returncode is None:
            await client.stop()


def _plain_function(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    # pygls writes an attribute on what it is given, which a bound method cannot hold.
    async def call(params: Any) -> Any:
        return await method(params)

    return call

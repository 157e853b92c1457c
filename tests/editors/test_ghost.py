"""The plugin's ghost text: when it asks, what it takes, and which keys it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from editors.neovim import PLUGIN, Neovim, changed_once, documented_keys, untouched

pytestmark = pytest.mark.e2e

TEXT = "def area(r):\n    \n    print(r)\n"
DRAFT = "if r > 0:\n        return math.pi"


def ghost(plugin: Neovim) -> list[str]:
    """Return the lines of the ghost text that is drawn."""
    code = """
        local space = vim.api.nvim_get_namespaces()['frostline.ghost']
        local mark = vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {details = true})[1]
        if not mark then return {} end
        local lines = { mark[4].virt_text, unpack(mark[4].virt_lines or {}) }
        return vim.tbl_map(function(chunks)
          return table.concat(vim.tbl_map(function(chunk) return chunk[1] end, chunks))
        end, lines)
    """
    return list(plugin.lua(code))


def settle(plugin: Neovim) -> None:
    """Let pass whatever would ask now."""
    plugin.lua("vim.wait(60, function() return false end, 5)")


@pytest.fixture
def asked(plugin: Neovim) -> Iterator[object]:
    """Give a function that counts the questions for ghost text."""
    plugin.lua("""
        asked = 0
        counter = vim.api.nvim_create_autocmd('LspRequest', {callback = function(event)
          local request = event.data.request
          if request.method == 'textDocument/inlineCompletion' and request.type == 'pending' then
            asked = asked + 1
          end
        end})
    """)
    yield lambda: plugin.lua("return asked")
    plugin.lua("vim.api.nvim_del_autocmd(counter)")


@pytest.fixture
def answered(plugin: Neovim) -> Iterator[object]:
    """Give a function that counts the answers."""
    plugin.lua("""
        answered = 0
        counter = vim.api.nvim_create_autocmd('LspRequest', {callback = function(event)
          local request = event.data.request
          if request.method == 'textDocument/inlineCompletion' and request.type == 'complete' then
            vim.schedule(function() answered = answered + 1 end)
          end
        end})
    """)
    yield lambda: plugin.lua("return answered")
    plugin.lua("vim.api.nvim_del_autocmd(counter)")


def auto(plugin: Neovim, more: str = "") -> None:
    plugin.command(f"lua vim.g.frostline = {{ ghost = 'auto', ghost_delay = 10, {more} }}")


def test_it_is_drawn_beside_the_file_and_accepted_in_one_step(plugin: Neovim):
    plugin.open("a.py", TEXT)
    plugin.play([["░", DRAFT]])
    plugin.cursor(2, 3)
    plugin.keys("A<M-i>")
    plugin.until(lambda: ghost(plugin) == DRAFT.split("\n"), "the ghost text")
    untouched(plugin)
    plugin.keys("<M-y>")
    after = ["def area(r):", "    if r > 0:", "        return math.pi", "    print(r)"]
    plugin.until(lambda: plugin.lines == after, "accepted")
    assert plugin.mode == "i"
    assert plugin.api("win_get_cursor", 0) == [3, 22]
    assert ghost(plugin) == []
    changed_once(plugin, after)


@pytest.mark.complaint(20)
def test_words_and_lines_go_in_one_by_one_without_a_new_question(plugin: Neovim, asked):
    plugin.open("a.py", TEXT)
    plugin.play([["░", DRAFT]])
    plugin.cursor(2, 3)
    plugin.keys("A<M-i>")
    plugin.until(lambda: ghost(plugin), "the ghost text")
    plugin.keys("<M-w>")
    plugin.until(lambda: plugin.lines[1] == "    if", "a word")
    assert ghost(plugin) == [" r > 0:", "        return math.pi"]
    plugin.command("Frostline line")
    plugin.until(lambda: plugin.lines[1:3] == ["    if r > 0:", ""], "a line")
    assert ghost(plugin) == ["        return math.pi"]
    plugin.keys("<M-y>")
    plugin.until(lambda: plugin.lines[2] == "        return math.pi", "the rest")
    assert asked() == 1
    plugin.keys("<Esc>")
    for line in ("    if r > 0:", "    if", "    "):
        plugin.keys("u")
        plugin.until(lambda line=line: plugin.lines[1] == line, "each is one undo")
    assert plugin.lines == TEXT.splitlines()


@pytest.mark.complaint(19)
def test_what_is_typed_along_is_not_written_twice(plugin: Neovim):
    plugin.open("a.py", TEXT)
    plugin.play([["░", "return math.pi"]])
    plugin.cursor(2, 3)
    plugin.keys("A<M-i>")
    plugin.until(lambda: ghost(plugin), "the ghost text")
    plugin.keys("ret<M-y>")
    plugin.until(lambda: plugin.lines[1] == "    return math.pi", "accepted, at once after typing")
    plugin.keys("<Esc>u")
    plugin.until(lambda: plugin.lines[1] == "    ret", "what was typed is a step of its own")


def test_it_asks_while_one_types_and_only_where_that_is_wanted(plugin: Neovim, asked):
    plugin.open("a.py", TEXT)
    plugin.play([["░", " = 1"]])
    plugin.cursor(2, 3)
    plugin.keys("Ax")
    settle(plugin)
    assert asked() == 0, "by itself it does not"
    auto(plugin)
    plugin.keys("y")
    plugin.until(lambda: ghost(plugin) == [" = 1"], "without a key for it")
    assert asked() == 1
    plugin.command("stopinsert")
    plugin.until(lambda: not ghost(plugin), "it ends with insert mode")


@pytest.mark.complaint(6)
def test_deleting_pasting_and_completing_are_no_reason_to_ask(plugin: Neovim, asked):
    auto(plugin)
    plugin.open("a.py", "value = 1\nvalve = 2\nfirst line\n")
    plugin.play([["░", "return 1"]])
    plugin.cursor(3, 0)
    plugin.keys("A<BS><BS>")
    settle(plugin)
    plugin.lua("vim.fn.setreg('a', 'a long text that was not typed')")
    plugin.keys("<C-r>a")
    settle(plugin)
    plugin.keys("<CR>val<C-n>")
    plugin.until(lambda: plugin.lua("return vim.fn.pumvisible() == 1"), "the popup menu")
    settle(plugin)
    before = asked()
    plugin.keys("<C-y>")
    plugin.until(lambda: plugin.lua("return vim.fn.pumvisible() == 0"), "taken")
    settle(plugin)
    assert asked() == before
    plugin.keys(" ")
    plugin.until(lambda: asked() == before + 1, "typing is")


@pytest.mark.complaint(21)
def test_what_was_dismissed_stays_away_until_the_text_changes(plugin: Neovim, asked):
    auto(plugin)
    plugin.open("a.py", TEXT)
    plugin.play([["░", " = 1"]])
    plugin.cursor(2, 3)
    plugin.keys("Ax")
    plugin.until(lambda: ghost(plugin), "the ghost text")
    count = asked()
    plugin.keys("<M-e>")
    plugin.until(lambda: not ghost(plugin), "dismissed")
    plugin.keys("<Left><Right><Esc>A")
    settle(plugin)
    assert (ghost(plugin), asked()) == ([], count)
    plugin.keys("y")
    plugin.until(lambda: ghost(plugin), "the text has changed")


@pytest.mark.complaint(14)
def test_tab_falls_through_to_what_it_was(plugin: Neovim):
    plugin.open("a.py", "def area(r):\n    \n")
    plugin.command("setlocal expandtab softtabstop=4 shiftwidth=4")
    plugin.play([["░", "return 1"]])
    plugin.lua("require('frostline').map('i', '<Tab>', 'accept')")
    plugin.cursor(2, 3)
    plugin.keys("A<Tab>")
    plugin.until(lambda: plugin.lines[1] == " " * 8, "a tab, as the buffer has them")
    plugin.keys("<M-i>")
    plugin.until(lambda: ghost(plugin), "the ghost text")
    plugin.keys("<Tab>")
    plugin.until(lambda: plugin.lines[1] == "        return 1", "accepted")
    plugin.keys("<Tab>")
    plugin.until(lambda: plugin.lines[1] == "        return 1    ", "a tab again")
    # And to a mapping that was there before.
    plugin.lua("""
        vim.keymap.del('i', '<Tab>')
        vim.keymap.set('i', '<Tab>', function() return '!' end, {expr = true})
        require('frostline').map('i', '<Tab>', 'accept')
    """)
    plugin.keys("<Tab>")
    plugin.until(lambda: plugin.lines[1].endswith("    !"), "the user's own")
    plugin.lua("vim.keymap.del('i', '<Tab>')")


@pytest.mark.complaint(14)
def test_no_key_is_mapped_by_the_plugin_itself(shared_plugin: Neovim):
    keys = """
        return vim.iter({'n', 'x', 's', 'o', 'i', 't', 'c'}):map(function(mode)
          return vim.iter(vim.api.nvim_get_keymap(mode)):filter(function(map)
            return (map.desc or ''):find('^Frostline')
          end):map(function(map) return map.lhs end):totable()
        end):flatten():totable()
    """
    ours = shared_plugin.lua(keys)
    assert ours
    assert [key for key in ours if not key.startswith("<Plug>(frostline-")] == []


@pytest.mark.complaint(20)
@pytest.mark.parametrize("popup", ["beside", "hide"])
def test_it_stands_beside_the_popup_menu_or_is_hidden(plugin: Neovim, popup: str, answered):
    plugin.command(f"lua vim.g.frostline = {{ popup = '{popup}' }}")
    plugin.open("a.py", "value = 1\nvalve = 2\n\n# below\n")
    plugin.attach(60, 12)
    plugin.play([["░", "ue = [\n    1]"]])
    plugin.cursor(3, 0)
    plugin.command("set completeopt=menuone,noselect")
    plugin.keys("Aval<C-n>")
    plugin.until(lambda: plugin.lua("return vim.fn.pumvisible() == 1"), "the popup menu")
    assert plugin.lines[2] == "val"
    plugin.keys("<M-i>")
    if popup == "beside":
        plugin.until(lambda: plugin.drawn().row(2) == "value = [ (+1 lines)", "beside it")
        assert "valve" in "\n".join(plugin.drawn().text[3:5]), "the menu"
        plugin.keys("<M-y>")
        plugin.until(lambda: plugin.lines[2:4] == ["value = [", "    1]"], "in")
    else:
        plugin.until(lambda: answered() == 1, "the answer is there")
        assert plugin.drawn().row(2) == "val"
        assert ghost(plugin) == []
        assert plugin.lua("return require('frostline').offers()") is False
    plugin.command("set completeopt&")


@pytest.mark.complaint(20)
@pytest.mark.parametrize(
    "menu",
    [
        "package.loaded['blink.cmp'] = {is_menu_visible = function() return menu end}",
        "package.loaded['cmp'] = {visible = function() return menu end}",
    ],
    ids=["blink.cmp", "nvim-cmp"],
)
def test_other_completion_menus_count_as_well(plugin: Neovim, menu: str):
    plugin.open("a.py", TEXT)
    plugin.play([["░", DRAFT]])
    plugin.lua(f"menu = true {menu}")
    plugin.cursor(2, 3)
    plugin.keys("A<M-i>")
    plugin.until(lambda: ghost(plugin) == ["if r > 0: (+1 lines)"], "one line, beside the menu")
    plugin.lua("menu = false")
    event = "BlinkCmpMenuClose" if "blink" in menu else "CmpMenuClosed"
    plugin.command(f"doautocmd User {event}")
    assert ghost(plugin) == DRAFT.split("\n")
    plugin.lua("package.loaded['blink.cmp'], package.loaded['cmp'] = nil, nil")


@pytest.mark.complaint(24)
@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("filetypes = { python = false }", "off for python"),
        ("paths = { '**/secret/**' }", "off for files like"),
    ],
)
def test_it_is_off_per_filetype_and_path(plugin: Neovim, setting: str, why: str):
    plugin.command(f"lua vim.g.frostline = {{ ghost = 'auto', {setting} }}")
    folder = plugin.folder / "secret"
    folder.mkdir(exist_ok=True)
    (folder / "a.py").write_text(TEXT)
    plugin.command(f"edit {folder / 'a.py'}")
    assert plugin.lua("return vim.bo.filetype") == "python"
    assert plugin.lua("return #vim.lsp.get_clients({bufnr = 0})") == 0
    for name in ("fill", "body", "ghost", "rewrite"):
        plugin.command(f"messages clear | Frostline {name}")
        assert why in plugin.messages()


@pytest.mark.complaint(24)
def test_it_is_off_and_on_in_a_buffer(plugin: Neovim, asked):
    auto(plugin)
    plugin.open("a.py", TEXT)
    plugin.command("Frostline off")
    plugin.until(lambda: not plugin.attached(), "detached")
    plugin.cursor(2, 3)
    plugin.keys("Ax")
    settle(plugin)
    plugin.keys("<Esc>")
    assert asked() == 0
    plugin.command("Frostline fill")
    assert "off in this buffer" in plugin.messages()
    plugin.command("Frostline on")
    plugin.until(plugin.attached, "attached again")


@pytest.mark.complaint(11)
def test_a_failure_that_nobody_asked_for_is_not_told(plugin: Neovim, asked):
    """It may be in the log; a person who types is left alone."""
    auto(plugin)
    plugin.open("a.py", TEXT)
    plugin.configure({"worker": "scripted:/nowhere/steps.json"})
    plugin.cursor(2, 3)
    plugin.keys("Axyz")
    plugin.until(lambda: asked() >= 1, "it asks")
    settle(plugin)
    assert plugin.messages() == ""
    assert plugin.mode == "i"
    assert plugin.lines[1] == "    xyz"


# --- Neovim 0.12 -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def newer(shared_plugin: Neovim, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    """A Neovim that has `vim.lsp.inline_completion`, as 0.12 has it."""
    folder = tmp_path_factory.mktemp("newer")
    start = f"vim.opt.rtp:prepend('{PLUGIN}')\ndofile('{Path(__file__).with_name('core.lua')}')\n"
    settings = "vim.g.frostline = { ghost = 'auto' }\nvim.lsp.enable('frostline')\n"
    init = folder / "init.lua"
    init.write_text(start + settings + documented_keys())
    neovim = Neovim(folder, init)
    yield neovim
    neovim.close()


def theirs(newer: Neovim) -> int:
    return int(
        newer.lua(
            "local space = vim.api.nvim_get_namespaces()['nvim.lsp.inline_completion']"
            "return #vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {})"
        )
    )


@pytest.mark.parametrize("shape", ["positions", "numbers"])
def test_neovims_own_inline_completion_asks_and_draws(newer: Neovim, shape: str):
    newer.open("a.py", TEXT)
    newer.lua("vim.lsp.inline_completion.shape = ...", shape)
    newer.play([["░", " = 3 * r"]])
    newer.cursor(2, 3)
    newer.keys("Ax")
    newer.until(lambda: theirs(newer) == 1, "drawn by Neovim")
    assert ghost(newer) == []
    assert newer.lua("return require('frostline').offers()") is True
    newer.keys("<M-w>")
    newer.until(lambda: newer.lines[1] == "    x =", "a word of it")
    newer.until(lambda: ghost(newer) == [" 3 * r"], "the rest, by the plugin")
    newer.keys("<M-y>")
    newer.until(lambda: newer.lines[1] == "    x = 3 * r", "all of it")
    assert newer.seen()[-1].undo == [3, 3]
    newer.tidy()


@pytest.mark.complaint(20)
def test_neovims_own_ghost_text_is_hidden_and_asks_for_nothing_unwanted(newer: Neovim):
    newer.open("a.py", TEXT)
    newer.play([["░", " = 3 * r"]])
    newer.cursor(2, 3)
    newer.keys("Ax")
    newer.until(lambda: theirs(newer) == 1, "drawn by Neovim")
    newer.keys("<M-e>")
    newer.until(lambda: theirs(newer) == 0, "dismissed")
    asked = newer.lua("return vim.lsp.inline_completion.asked")
    newer.keys("<Left><Right>")
    settle(newer)
    newer.keys("<BS>")
    settle(newer)
    assert newer.lua("return vim.lsp.inline_completion.asked") == asked
    newer.keys("x")
    newer.until(lambda: theirs(newer) == 1, "typing asks")
    newer.tidy()

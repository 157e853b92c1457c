"""The plugin's live drafts, in real Neovim against the real server: the text, and nothing of how it looks.

Every test looks at each state that the buffer went through, by a timer faster than a draft's steps.
"""

from __future__ import annotations

import psutil
import pytest

from editors.neovim import Neovim, changed_once, untouched

pytestmark = pytest.mark.e2e

FUNCTION = "def area(r):\n    return 3.14 * r * r\n"
STEPS = ["░░░░░░", "return math.░░ * r", "return math.pi * r ** 2"]
AFTER = ["def area(r):", "    return math.pi * r ** 2"]
BODY = (1, 4, 1, 23)
TWO = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
# A run that goes on until the test is done with it: the draft stands, two slots stay open.
UNENDING = ["░░░░░░", *["return ░░"] * 10_000]


def drafting(plugin: Neovim, *holes: tuple[int, int, int, int]) -> None:
    """Begin a draft, and wait until the first of it is shown."""
    plugin.begin(*holes)
    plugin.until(lambda: any(plugin.draft()), "the first of the draft")


# --- nothing until the accept ------------------------------------------------------------------


@pytest.mark.complaint(1)
@pytest.mark.complaint(2)
def test_a_draft_leaves_the_buffer_alone_and_one_accept_is_one_undo(plugin: Neovim):
    path = plugin.open("a.py", FUNCTION)
    plugin.play([STEPS])
    plugin.cursor(2, 4)
    plugin.keys("V\\ir")
    plugin.becomes("draft ready")
    assert plugin.draft() == [STEPS[-1]]
    untouched(plugin)
    plugin.keys("\\ia")
    changed_once(plugin, AFTER)
    plugin.gone()
    assert path.read_text() == FUNCTION, "writing is the user's"


@pytest.mark.complaint(18)
def test_a_rejected_draft_leaves_no_trace(plugin: Neovim):
    plugin.open("a.py", FUNCTION)
    plugin.play([UNENDING])
    drafting(plugin, BODY)
    plugin.keys("\\ic")
    plugin.gone()
    untouched(plugin)
    plugin.until(lambda: plugin.state().get("state") == "cancelled", "the server says so")


@pytest.mark.complaint(2)
def test_a_killed_server_leaves_the_buffer_alone_and_says_so(plugin: Neovim):
    plugin.open("a.py", FUNCTION)
    plugin.play([UNENDING])
    drafting(plugin, BODY)
    plugin.kill_server()
    plugin.gone()
    untouched(plugin)
    assert "the server stopped; the text is as it was" in plugin.messages()
    plugin.keys("\\ia")
    plugin.until(lambda: "there is no draft" in plugin.messages(), "nothing is left to accept")
    untouched(plugin)
    plugin.restart_server()
    plugin.play([STEPS])
    plugin.begin(BODY)
    plugin.becomes("draft ready")
    plugin.keys("\\ia")
    changed_once(plugin, AFTER)


@pytest.mark.complaint(23)
def test_what_holds_secrets_is_never_opened_in_the_server(plugin: Neovim):
    """Not for its name, and not for a filetype that the user gives it."""
    plugin.open("a.py", FUNCTION)
    plugin.lua("""
        sent = {}
        local client = vim.lsp.get_clients({name = 'frostline'})[1]
        for _, name in ipairs({'notify', 'request'}) do
          local before = client[name]
          client[name] = function(self, method, params, ...)
            table.insert(sent, vim.json.encode(params or {}))
            return before(self, method, params, ...)
          end
        end
    """)
    for name in (".env", ".env.local", "key.pem"):
        (plugin.folder / name).write_text("TOKEN = 'sesame'\n")
        plugin.command(f"edit {plugin.folder / name} | setfiletype python")
        assert plugin.lua("return #vim.lsp.get_clients({bufnr = 0})") == 0
        plugin.keys("\\ii")
        plugin.until(lambda: "off for files like" in plugin.messages(), "why there is none")
        plugin.command("messages clear | edit a.py")
    plugin.lua("vim.lsp.get_clients({name = 'frostline'})[1]:notify('$/setTrace', {value = 'off'})")
    sent = plugin.lua("return sent")
    assert sent, "the spy hears"
    assert not any("sesame" in one for one in sent)


@pytest.mark.complaint(23)
def test_the_server_refuses_secrets_that_a_user_lets_through(plugin: Neovim):
    plugin.command("lua vim.g.frostline = { paths = {} }")
    plugin.open(".env", "TOKEN = \n", filetype="python")
    plugin.play([["'sesame'"]])
    plugin.begin((0, 8, 0, 8), intent="infill")
    plugin.until(lambda: ".env" in plugin.messages(), "the server's own reason")
    plugin.gone()
    untouched(plugin)


# --- accepting ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "texts"),
    [
        ("all", [["def f():", "    return 10", "", "", "def g():", "    return 20"]]),
        (
            "hole",
            [
                ["def f():", "    return 10", "", "", "def g():", "    return 2"],
                ["def f():", "    return 10", "", "", "def g():", "    return 20"],
            ],
        ),
    ],
)
def test_two_holes_go_in_together_or_one_by_one(plugin: Neovim, scope: str, texts: list[list[str]]):
    plugin.open("a.py", TWO)
    plugin.play([["░░", "return 10"], ["░░", "return 20"]])
    plugin.begin((1, 4, 1, 12), (5, 4, 5, 12))
    plugin.becomes("draft ready")
    before = plugin.lines
    for number, text in enumerate(texts):
        plugin.cursor((2, 6)[number], 0)
        plugin.command("Frostline " + {"all": "accept"}.get(scope, scope))
        plugin.until(lambda text=text: plugin.lines == text, f"{scope} number {number + 1}")
        plugin.seen()
    plugin.gone()
    assert [state.lines for state in plugin.seen()] == [before, *texts]
    assert plugin.seen()[-1].undo == [len(texts), len(texts)]
    for text in [*texts[-2::-1], before]:
        plugin.keys("u")
        plugin.until(lambda text=text: plugin.lines == text, "each is a step of its own")


@pytest.mark.parametrize(
    ("scope", "parts"),
    [
        (
            "line",
            [
                ["if r:", "    pass"],
                ["if r:", "    return r", "    pass"],
                ["if r:", "    return r", "return 0"],
            ],
        ),
        ("word", [["if", "    pass"], ["if r", "    pass"]]),
    ],
)
@pytest.mark.complaint(1)
def test_a_part_is_one_undo_step_and_the_rest_stays_on_offer(
    plugin: Neovim, scope: str, parts: list[list[str]]
):
    plugin.open("a.py", "def area(r):\n    pass\n")
    plugin.play([["░░", "if r:\n        return r\n    return 0"]])
    plugin.begin((1, 4, 1, 8))
    plugin.becomes("draft ready")
    texts = [plugin.lines]
    for _ in parts:
        plugin.command(f"Frostline {scope}")
        plugin.until(lambda: plugin.seen()[-1].lines != texts[-1], f"the next {scope}")
        texts.append(plugin.lines)
    squeezed = ["".join("".join(text[1:]).split()) for text in texts[1:]]
    assert squeezed == ["".join("".join(part).split()) for part in parts]
    assert [state.lines for state in plugin.seen()] == texts, "and nothing between"
    assert plugin.seen()[-1].undo == [len(parts), len(parts)]
    for text in reversed(texts[:-1]):
        plugin.keys("u")
        plugin.until(lambda text=text: plugin.lines == text, "each is a step of its own")


def test_what_is_stable_goes_in_while_the_rest_is_denoised(plugin: Neovim):
    plugin.open("a.py", FUNCTION)
    plugin.play([["░░░", *["return r░░"] * 10_000]])
    drafting(plugin, BODY)
    plugin.until(lambda: "stable" in plugin.piece_states(), "some of it is stable")
    plugin.command("Frostline stable")
    plugin.until(lambda: len(plugin.seen()) == 2, "it is in")
    assert plugin.lines[1].startswith("    return r")
    assert plugin.seen()[-1].undo == [1, 1]
    assert (plugin.words() or "").startswith("drafting"), "it goes on"
    plugin.keys("u")
    plugin.until(lambda: plugin.lines == FUNCTION.splitlines(), "one undo")


@pytest.mark.complaint(22)
def test_an_accept_in_insert_mode_stays_there_with_the_cursor_behind_the_text(plugin: Neovim):
    plugin.open("a.py", "value = max(, 1)\n")
    plugin.play([["░", "b", "best"]])
    plugin.lua("modes = {} vim.api.nvim_create_autocmd('ModeChanged', {callback = function()"
               " table.insert(modes, vim.v.event.new_mode) end})")  # fmt: skip
    plugin.cursor(1, 12)
    plugin.keys("i")
    plugin.command("Frostline fill")
    plugin.becomes("draft ready")
    plugin.keys("<M-y>")
    plugin.until(lambda: plugin.lines == ["value = max(best, 1)"], "accepted")
    assert plugin.api("win_get_cursor", 0) == [1, 16]
    assert plugin.lua("return modes") == ["i"]
    plugin.keys("!")
    plugin.until(lambda: plugin.lines == ["value = max(best!, 1)"], "typing goes on")
    plugin.keys("<Esc>u")
    plugin.until(lambda: plugin.lines == ["value = max(best, 1)"], "what was typed after it")
    plugin.keys("u")
    plugin.until(lambda: plugin.lines == ["value = max(, 1)"], "and the draft")


@pytest.mark.complaint(13)
def test_an_accept_with_the_popup_menu_open_types_nothing(plugin: Neovim):
    plugin.open("a.py", "value = 1\nvalve = 2\nother = max(, 1)\n")
    plugin.play([["░", "best"]])
    plugin.cursor(3, 0)
    plugin.keys("Oval<C-n>")
    plugin.until(lambda: plugin.lua("return vim.fn.pumvisible() == 1"), "the popup menu")
    typed = plugin.lines[2]
    assert typed in ("value", "valve"), "the item that is chosen"
    plugin.begin((3, 12, 3, 12), intent="infill")
    plugin.becomes("draft ready")
    assert plugin.lua("return vim.fn.pumvisible() == 1"), "a draft leaves it open"
    plugin.keys("<M-y>")
    plugin.until(lambda: plugin.lines[3] == "other = max(best, 1)", "accepted")
    assert plugin.lines == ["value = 1", "valve = 2", typed, "other = max(best, 1)"]


def test_a_rewrite_is_repeated_with_a_dot(plugin: Neovim):
    plugin.open("a.py", TWO)
    plugin.play([["░", "return 10"]])
    plugin.cursor(2, 4)
    plugin.keys("\\ir$")
    plugin.becomes("draft ready")
    plugin.keys("\\ia")
    plugin.until(lambda: plugin.lines[1] == "    return 10", "the first")
    plugin.gone()
    plugin.play([["░", "return 20"]])
    plugin.cursor(6, 4)
    plugin.keys(".")
    plugin.becomes("draft ready")
    plugin.keys("\\ia")
    plugin.until(lambda: plugin.lines[5] == "    return 20", "the same again, there")
    assert plugin.seen()[-1].undo == [2, 2]


def test_a_draft_that_does_not_parse_needs_a_word_more(plugin: Neovim):
    plugin.open("a.py", "value = 1\n")
    plugin.play([["░", "(("]])
    plugin.begin((0, 8, 0, 9))
    plugin.becomes("draft ready, does not parse")
    plugin.command("Frostline accept")
    plugin.until(lambda: ":Frostline! accept takes it" in plugin.messages(), "what to do about it")
    untouched(plugin)
    plugin.command("Frostline! accept")
    changed_once(plugin, ["value = (("])


# --- while somebody types ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "before", "after"),
    [
        ("ggO# mine<Esc>", ["# mine"], []),
        ("Go# mine<Esc>", [], ["# mine"]),
    ],
    ids=["above", "below"],
)
def test_typing_elsewhere_moves_the_draft(
    plugin: Neovim, keys: str, before: list[str], after: list[str]
):
    plugin.open("a.py", FUNCTION)
    plugin.play([["░░░", *["return ░"] * 8, "return 0"]])
    drafting(plugin, BODY)
    plugin.keys(keys)
    typed = [*before, *FUNCTION.splitlines(), *after]
    plugin.until(lambda: plugin.lines == typed, "typed")
    plugin.becomes("draft ready")
    plugin.until(lambda: plugin.hole() == (len(before) + 1, 4), "the hole has moved")
    plugin.keys("\\ia")
    done = [*before, "def area(r):", "    return 0", *after]
    plugin.until(lambda: plugin.lines == done, "accepted where the hole is now")
    plugin.keys("u")
    plugin.until(lambda: plugin.lines == typed, "the user's typing is a step of its own")


def test_what_is_typed_inside_a_hole_is_kept(plugin: Neovim):
    plugin.open("a.py", FUNCTION)
    plugin.play([["░░░", *["░░░"] * 10_000]], [["x + "], [" + y"]])
    drafting(plugin, BODY)
    plugin.cursor(2, 11)
    plugin.keys("imine<Esc>")
    plugin.becomes("draft ready")
    assert plugin.draft() == ["x + ", " + y"], "it goes on at both sides"
    plugin.command("Frostline accept")
    plugin.until(lambda: plugin.lines[1] == "    x + mine + y", "accepted")
    plugin.keys("u")
    plugin.until(lambda: "mine" in plugin.lines[1] and "3.14" in plugin.lines[1], "as it was typed")


@pytest.mark.complaint(19)
def test_an_edit_for_an_older_text_is_not_made(plugin: Neovim):
    """The worst moment to type: the accepted edit is on its way."""
    plugin.open("a.py", FUNCTION)
    plugin.play([STEPS])
    plugin.begin(BODY)
    plugin.becomes("draft ready")
    plugin.lua("""
        vim.api.nvim_create_autocmd('LspRequest', {callback = function(event)
          local request = event.data.request
          if request.method == 'frostline/accept' and request.type == 'complete' then
            vim.api.nvim_buf_set_lines(0, 0, 0, true, {'# mine'})
            return true
          end
        end})
    """)
    plugin.keys("\\ia")
    plugin.until(lambda: "not put in: the text changed" in plugin.messages(), "why not")
    assert plugin.lines == ["# mine", *FUNCTION.splitlines()]


def test_an_edit_outside_of_its_hole_is_not_made(plugin: Neovim):
    """What the server promises is compared once more."""
    plugin.open("a.py", FUNCTION)
    plugin.play([STEPS])
    plugin.begin(BODY)
    plugin.becomes("draft ready")
    plugin.lua("""
        local client = vim.lsp.get_clients({name = 'frostline', bufnr = 0})[1]
        local request = client.request
        client.request = function(self, method, params, handler, ...)
          client.request = request
          return request(self, method, params, function(err, result, ...)
            result.edit.documentChanges[1].edits[1].range.start.character = 0
            return handler(err, result, ...)
          end, ...)
        end
    """)
    plugin.keys("\\ia")
    plugin.until(lambda: "outside of its hole" in plugin.messages(), "why not")
    untouched(plugin)


# --- other files, other places -----------------------------------------------------------------


def test_the_end_of_a_file_of_twenty_thousand_lines(plugin: Neovim):
    lines = [f"value_{number} = {number}" for number in range(20_000)]
    plugin.open("a.py", "\n".join([*lines, *FUNCTION.splitlines()]) + "\n", watch=False)
    plugin.play([STEPS])
    plugin.cursor(20_002, 4)
    tick = plugin.lua("return vim.b.changedtick")
    plugin.keys("V\\ir")
    plugin.becomes("draft ready")
    assert plugin.lua("return vim.b.changedtick") == tick
    plugin.keys("\\ia")
    plugin.until(lambda: plugin.lua("return vim.fn.getline('$')") == AFTER[1], "accepted")
    assert plugin.lua("return vim.fn.undotree().seq_last") == 1
    plugin.keys("u")
    plugin.until(lambda: plugin.lines == [*lines, *FUNCTION.splitlines()], "one undo")


@pytest.mark.complaint(7)
def test_every_byte_outside_the_hole_stays_in_a_file_with_crlf(plugin: Neovim):
    """And a byte order mark, form feeds, U+2028, tabs, a wide character, no newline at the end."""
    start = (
        "\ufeffimport math\r\n\f\r\nrule = 'a\u2028b'  # \f é 😀\r\n\r\ndef area(r):\r\n\treturn "
    )
    old, end = "3.14 * r", "\r\n\f\r\n# e\u2028nd"
    path = plugin.open("a.py", (start + old + end).encode())
    plugin.lua("vim.bo.fixeol = false")  # Neovim itself would end the last line
    plugin.play([["░░░", "(\n\t\t░", "(\n\t\tmath.pi * '😀'\n\t)"]])
    plugin.cursor(6, 8)
    plugin.keys("v$h\\ir")
    plugin.becomes("draft ready")
    untouched(plugin)
    plugin.keys("\\ia")
    plugin.until(lambda: len(plugin.lines) == 10, "accepted")
    plugin.command("write")
    assert path.read_bytes() == (start + "(\r\n\t\tmath.pi * '😀'\r\n\t)" + end).encode()
    plugin.keys("u")
    plugin.until(lambda: plugin.lines == plugin.seen()[0].lines, "undone")
    plugin.command("write")
    assert path.read_bytes() == (start + old + end).encode()


def test_two_buffers_have_a_draft_each(plugin: Neovim):
    plugin.open("b.py", "other = 1\n")
    plugin.open("a.py", "value = 1\n")
    plugin.play([["░", "10"]])
    plugin.begin((0, 8, 0, 9))
    plugin.becomes("draft ready")
    plugin.command("tabedit " + str(plugin.folder / "b.py"))
    assert plugin.words() is None
    plugin.begin((0, 8, 0, 9))
    plugin.becomes("draft ready")
    plugin.keys("\\ia")
    plugin.until(lambda: plugin.lines == ["other = 10"], "this one's")
    plugin.command("tabprevious")
    assert plugin.words() == "draft ready"
    assert plugin.lines == ["value = 1"]


# --- another try -------------------------------------------------------------------------------


@pytest.mark.complaint(3)
def test_a_draft_is_pinned_refined_tried_again_and_taken_back(plugin: Neovim):
    plugin.open("a.py", "value = 1\n")
    plugin.play([["░", "a + b"]], [["░", " * c"]], [["░", " * d"]])
    plugin.begin((0, 8, 0, 9))
    plugin.becomes("draft ready")
    plugin.command("Frostline pin a")
    plugin.until(lambda: plugin.draft() == ["a * c"], "the rest of it is another")
    plugin.becomes("draft ready")
    plugin.command("Frostline refine strength=1")
    plugin.until(lambda: plugin.draft() == ["a * d"], "and another, with what is pinned")
    plugin.becomes("draft ready")
    plugin.command("Frostline back")
    plugin.until(lambda: plugin.draft() == ["a * c"], "the one before")
    untouched(plugin)
    plugin.command("Frostline accept")
    changed_once(plugin, ["value = a * c"])


def test_a_new_draft_takes_the_place_of_the_one_before(plugin: Neovim):
    plugin.open("a.py", TWO)
    plugin.play([UNENDING], [["░", "return 20"]])
    drafting(plugin, (1, 4, 1, 12))
    plugin.begin((5, 4, 5, 12))
    plugin.becomes("draft ready")
    assert plugin.draft() == ["return 20"]
    untouched(plugin)


# --- with the model ----------------------------------------------------------------------------


MODEL = {"worker": "", "idleS": 30, "threads": 1}


def workers() -> list[psutil.Process]:
    """Return the model workers of these tests."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or ()
        if "worker" in words and any("frostline-tests-" in word for word in words):
            found.append(process)
    return found


def test_the_embedded_model_denoises_two_holes_and_survives_its_worker(plugin: Neovim):
    """What it writes is its own affair; where it may is not."""
    pytest.importorskip("torch", reason="no model without pip install 'frostline[local]'")
    plugin.open("a.py", "def f0(a, b):\n    return a + b\n\n\n" + TWO)
    plugin.configure(MODEL)
    before = plugin.lines
    holes = (5, 11, 5, 12), (9, 11, 9, 12)
    plugin.begin(*holes)
    plugin.until(lambda: (plugin.words() or "").startswith("draft ready"), "a draft")
    first = plugin.draft()
    untouched(plugin)
    plugin.command("Frostline! accept")
    after = list(before)
    after[5:6], after[9:10] = ["    return " + first[0]], ["    return " + first[1]]
    changed_once(plugin, "\n".join(after).split("\n"))
    plugin.keys("u")
    plugin.until(lambda: plugin.lines == before, "undone")
    seen = len(plugin.seen())
    # Killed at work: enough slots that it is far from done.
    plugin.begin((0, 0, 9, 12), length=200)
    plugin.until(lambda: any(plugin.draft()), "it denoises")
    killed = workers()
    assert killed
    for process in killed:
        process.kill()
    plugin.gone()
    assert plugin.lines == before
    assert len(plugin.seen()) == seen
    assert plugin.state().get("state") == "refused"
    assert "worker" in plugin.messages()

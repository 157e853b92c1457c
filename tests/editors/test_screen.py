"""What a person sees of a draft: the cells that Neovim draws, with the highlight groups on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from editors.neovim import Neovim
from editors.screen import Screen

pytestmark = pytest.mark.e2e

FUNCTION = "def area(r):\n    return 3.14 * r * r\n\n# below\n"
BODY = (1, 4, 1, 23)
# Slow enough that every step is a picture of its own.
PAUSE_MS = 150


@pytest.fixture
def plugin(plugin: Neovim) -> Iterator[Neovim]:
    """Show it on a screen of 80 times 16 cells."""
    plugin.attach(80, 16)
    yield plugin
    plugin.screen.film = None
    plugin.detach()
    plugin.command("set background=dark termguicolors& wrap& foldmethod& foldlevel&")


def filmed(plugin: Neovim, *holes: tuple[int, int, int, int]) -> list[Screen]:
    """Have holes drafted; return each picture from the first of the draft to its end."""
    plugin.drawn().film = []
    plugin.begin(*holes)
    plugin.until(lambda: (plugin.words() or "").startswith("draft ready"), "the draft")
    film = plugin.drawn().film
    assert film
    return [picture for picture in film if picture.find("draft") >= 0]


def labelled(film: list[Screen], label: str) -> Screen:
    """Return the first picture with this word beside the draft."""
    return next(picture for picture in film if f" {label}" in "\n".join(picture.text))


def joined(picture: Screen, row: int) -> list[tuple[str, str]]:
    """Return the runs of our groups in a row; runs of one group that only syntax tells apart are one."""
    result: list[tuple[str, str]] = []
    for text, group in picture.groups(row, "Frostline"):
        if result and result[-1][1] == group:
            result[-1] = (result[-1][0] + text, group)
        else:
            result.append((text, group))
    return result


@pytest.mark.complaint(5)
def test_a_draft_gets_clearer_from_step_to_step(plugin: Neovim):
    plugin.open("a.py", FUNCTION)
    steps = ["░░░░░░░░", "return math.░░", "return math.pi * ░░", "return math.pi * r"]
    plugin.play([steps], pause_ms=PAUSE_MS)
    film = filmed(plugin, BODY)
    old, arrow = ("return 3.14 * r * r", "FrostlineOld"), (" → ", "FrostlineLabel")
    moments = {
        "drafting 1/4": [
            old,
            arrow,
            ("░░░░░░░░", "FrostlineOpen"),
            (" drafting 1/4", "FrostlineLabel"),
        ],
        "drafting 2/4": [
            old,
            arrow,
            ("return math.", "FrostlineDraft"),
            ("░░", "FrostlineOpen"),
            (" drafting 2/4", "FrostlineLabel"),
        ],
        "drafting 3/4": [
            old,
            arrow,
            ("return math.", "FrostlineStable"),
            ("pi * ", "FrostlineDraft"),
            ("░░", "FrostlineOpen"),
            (" drafting 3/4", "FrostlineLabel"),
        ],
        "draft ready": [
            old,
            arrow,
            ("return math.pi * r", "FrostlineStable"),
            (" draft ready", "FrostlineLabel"),
        ],
    }
    for label, runs in moments.items():
        picture = labelled(film, label)
        assert joined(picture, 1) == runs, label
        assert picture.row(0) == "def area(r):"
        assert picture.row(3) == "# below"
        shown = "".join(text for text, _ in runs).replace(" draft", "  draft")
        assert picture.row(1) == "    " + shown
    assert plugin.screen.find("modified") < 0


def test_states_are_told_apart_without_colour(plugin: Neovim):
    """By the shade, by italic, bold and strikethrough, and by words."""
    plugin.open("a.py", FUNCTION)
    plugin.play([["░░░░", "return ░░", "return r"]], pause_ms=PAUSE_MS)
    film = filmed(plugin, BODY)
    picture = labelled(film, "drafting 2/3")
    looks = {
        name: look.attributes
        for _, look in picture.runs(1)
        for name in look.groups
        if name.startswith("Frostline")
    }
    assert "strikethrough" in looks["FrostlineOld"]
    assert looks["FrostlineDraft"] == {"italic"}
    final = {name: look for _, look in film[-1].runs(1) for name in look.groups}
    assert final["FrostlineStable"].attributes == {"bold"}


@pytest.mark.parametrize("background", ["dark", "light"])
@pytest.mark.parametrize("colours", ["termguicolors", "notermguicolors"])
def test_colours_are_those_of_the_colour_scheme(plugin: Neovim, background: str, colours: str):
    plugin.command(f"set {colours} background={background}")
    plugin.open("a.py", FUNCTION)
    plugin.play([["░░", "return r"]])
    plugin.begin(BODY)
    plugin.becomes("draft ready")
    code = "return vim.api.nvim_get_hl(0, {name = ..., link = false})"
    for ours, theirs in {"Open": "NonText", "Draft": "Comment", "Stable": "Normal"}.items():
        look, origin = plugin.lua(code, f"Frostline{ours}"), plugin.lua(code, theirs)
        assert look.get("fg") == origin.get("fg"), ours
        assert look.get("ctermfg") == origin.get("ctermfg", 8 if ours != "Stable" else None)
    # And on the screen: stable text is as firm as text, what it replaces is dimmer.
    runs = {name: look for _, look in plugin.drawn().runs(1) for name in look.groups}
    assert runs["FrostlineOld"].foreground != runs["FrostlineStable"].foreground


@pytest.mark.complaint(21)
def test_the_text_below_never_jumps_back(plugin: Neovim):
    """A draft that grows takes lines as it needs them, and gives none back before its end."""
    plugin.open("a.py", FUNCTION)
    steps = ["░░", "if r:\n        ░░\n        ░", "if r:\n        ░", "return r"]
    plugin.play([steps], pause_ms=PAUSE_MS)
    film = filmed(plugin, BODY)
    rows = [picture.find("# below") for picture in film]
    assert rows == sorted(rows)
    assert (rows[0], rows[-1]) == (3, 5)
    plugin.keys("\\ia")
    plugin.gone()
    assert plugin.drawn().find("# below") == 3


def test_a_rewrite_of_lines_has_their_height_from_its_first_step(plugin: Neovim):
    plugin.open("a.py", "def f(r):\n    a = 1\n    b = 2\n    return a + b\n\n# below\n")
    steps = ["░░", "x = 1\n    ░░", "x = 1\n    y = 2\n    return x"]
    plugin.play([steps], pause_ms=PAUSE_MS)
    film = filmed(plugin, (1, 4, 3, 16))
    rows = {picture.find("# below") for picture in film if picture.find("1/3") < 0}
    assert rows <= {5, 8}, "where it was, and below three lines of a draft"
    ready = film[-1]
    assert ready.text[1:8] == [
        "    a = 1",
        "    b = 2",
        "    return a + b  draft ready",
        "    x = 1",
        "    y = 2",
        "    return x",
        "",
    ]
    assert joined(ready, 4)[0] == ("    ", "FrostlineFrozen")
    assert joined(ready, 2)[-1] == ("b = 2", "FrostlineOld")


def test_a_long_draft_is_broken_where_a_window_wraps(plugin: Neovim):
    plugin.open("a.py", "def f(r):\n    a = 1\n    b = 2\n\n# below\n")
    plugin.command("vsplit | vertical resize 30 | wincmd l")
    long = "total = " + " + ".join(f"value_{number}" for number in range(5))
    plugin.play([["░░", long + "\n    pass"]])
    plugin.begin((1, 4, 2, 9))
    plugin.becomes("draft ready")
    rows = plugin.drawn().text
    for left, width in ((0, 30), (31, 49)):
        window = [row[left : left + width].rstrip() for row in rows]
        start = window.index("    b = 2  draft ready") + 1
        shown = "".join(window[start : start + 6]).replace(" ", "")
        assert shown.startswith(long.replace(" ", "") + "pass"), window
        assert "# below" in window


def test_two_windows_and_two_tab_pages_show_the_same_draft(plugin: Neovim):
    plugin.open("a.py", FUNCTION)
    plugin.play([["░░", "return r"]])
    plugin.command("split")
    plugin.begin(BODY)
    plugin.becomes("draft ready")
    shown = "    return 3.14 * r * r → return r  draft ready"
    assert plugin.drawn().text.count(shown) == 2
    plugin.command("tab split")
    assert plugin.drawn().text.count(shown) == 1
    plugin.keys("\\ia")
    plugin.gone()
    plugin.command("tabclose")
    assert plugin.drawn().text.count("    return r") == 2


def test_a_draft_in_a_closed_fold_leaves_it_closed(plugin: Neovim):
    plugin.open("a.py", "def area(r):\n    r += 1\n    return 3.14 * r * r\n")
    plugin.command("set foldmethod=indent foldlevel=0 | normal! zM")
    plugin.cursor(1, 0)
    folded = plugin.drawn().row(1)
    assert folded.startswith("+--")
    plugin.play([["░░", "if r:\n        return r"]])
    plugin.begin((2, 4, 2, 23))
    plugin.becomes("draft ready")
    assert plugin.lua("return vim.fn.foldclosed(3)") == 2
    assert plugin.drawn().row(1) == folded
    plugin.command("normal! zR")
    assert plugin.drawn().row(2).endswith("→ if r:  draft ready")
    assert plugin.drawn().row(3) == "        return r"


def test_inlay_hints_and_signs_stay_beside_it(plugin: Neovim):
    plugin.command("lua vim.g.frostline = { signs = true }")
    plugin.open("a.py", FUNCTION)
    plugin.lua("""
        local space = vim.api.nvim_create_namespace('hints')
        vim.api.nvim_buf_set_extmark(0, space, 1, 10,
          { virt_text = { { ': float' } }, virt_text_pos = 'inline' })
        vim.api.nvim_buf_set_extmark(0, space, 0, 0, { sign_text = 'E>' })
    """)
    plugin.play([["░░", "return r"]])
    plugin.begin(BODY)
    plugin.becomes("draft ready")
    screen = plugin.drawn()
    assert screen.row(0) == "E>def area(r):"
    assert screen.row(1) == "█     return: float 3.14 * r * r → return r  draft ready"


def test_old_text_can_be_hidden_and_conceal_is_as_it_was_afterwards(plugin: Neovim):
    plugin.command("lua vim.g.frostline = { old = 'hidden' }")
    plugin.open("a.py", FUNCTION)
    plugin.command("setlocal conceallevel=1")
    plugin.play([["░░", "return r"]])
    plugin.begin(BODY)
    plugin.becomes("draft ready")
    assert plugin.drawn().row(1) == "    return r  draft ready"
    assert plugin.lines[1] == "    return 3.14 * r * r"
    plugin.keys("\\ic")
    plugin.gone()
    assert plugin.lua("return vim.wo.conceallevel") == 1
    assert plugin.drawn().row(1) == "    return 3.14 * r * r"


@pytest.mark.complaint(21)
@pytest.mark.complaint(24)
def test_the_quiet_mode_puts_one_word_at_the_lines_end(plugin: Neovim):
    plugin.command("lua vim.g.frostline = { show = 'indicator' }")
    plugin.open("a.py", FUNCTION)
    plugin.play([["░░", "if r:\n        ░░", "if r:\n        return r"]], pause_ms=PAUSE_MS)
    film = filmed(plugin, BODY)
    rows = {picture.row(1) for picture in film}
    assert rows <= {
        f"    return 3.14 * r * r  {word}"
        for word in ("drafting", *(f"drafting {step}/3" for step in (1, 2, 3)), "draft ready")
    }
    assert {picture.find("# below") for picture in film} == {3}
    assert [group for _, group in joined(film[-1], 1)] == ["FrostlineLabel"]
    plugin.command("Frostline show")
    assert plugin.drawn().row(1).endswith("→ if r:  draft ready")
    plugin.command("Frostline hide")
    assert plugin.drawn().row(1) == "    return 3.14 * r * r  draft ready"


def test_states_are_announced_in_the_message_line_and_nothing_moves(plugin: Neovim):
    plugin.command("lua vim.g.frostline = { announce = 'all' }")
    plugin.open("a.py", FUNCTION)
    plugin.play([["░░", "return r"]], pause_ms=PAUSE_MS)
    plugin.cursor(4, 2)
    film = filmed(plugin, BODY)
    said = {picture.row(15) for picture in film}
    assert {"Frostline: drafting", "Frostline: draft ready"} <= said
    assert plugin.drawn().cursor == (3, 2)
    assert plugin.api("win_get_cursor", 0) == [4, 2]
    assert plugin.mode == "n"


def test_a_users_own_groups_stay(plugin: Neovim):
    plugin.open("a.py", FUNCTION)
    plugin.command("highlight FrostlineDraft guifg=#abcdef | set background=light")
    code = "return vim.api.nvim_get_hl(0, {name = 'FrostlineDraft'}).fg"
    assert plugin.lua(code) == 0xABCDEF
    plugin.command("highlight clear FrostlineDraft | doautocmd ColorScheme")
    assert plugin.lua(code) != 0xABCDEF

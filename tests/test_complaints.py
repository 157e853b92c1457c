"""What users of other tools complained of, and where it is tested that ours does not do it.

The numbers are those of a survey of public issue threads. `@pytest.mark.complaint(n)` carries one.
"""

import re
from pathlib import Path

SERVER = {
    1: "a streamed edit takes many undos",
    2: "the preview is written into the file",
    3: "one shot only, no refining",
    4: "cancels keep the model from ever loading",
    5: "no sign of life while it works",
    7: "worse in CRLF files",
    8: "the editor freezes while it completes",
    9: "the model holds its memory all day",
    10: "work although it is switched off",
    11: "an error interrupts the user",
    12: "wrong indentation",
    15: "untitled files crash the server",
    16: "non-ASCII text crashes the server",
    17: "rejecting leaves the model running",
    18: "declining corrupts the text",
    19: "an answer for a text that is no more",
    21: "nonsense is shown",
    23: "secrets are sent before the filter runs",
    24: "a large file overflows the context",
    25: "ghost text that no client can show",
}
# A plugin's own doing: when to ask, which keys to take, how to draw and apply.
PLUGINS = {
    6: "triggers on backspace",
    13: "the accept key types its own mapping",
    14: "Tab no longer inserts a tab",
    20: "ghost text over the popup menu",
    22: "accepting leaves insert mode",
}


def test_every_complaint_about_a_server_has_a_test() -> None:
    found: set[int] = set()
    for path in Path(__file__).parent.rglob("test_*.py"):
        found |= {
            int(number) for number in re.findall(r"mark\.complaint\((\d+)\)", path.read_text())
        }
    assert set(SERVER) - found == set()
    assert not set(SERVER) & set(PLUGINS)


# What the VS Code extension could do wrong, too; its tests carry the number in their titles.
VSCODE = {1, 2, 3, 5, 6, 7, 10, 11, 14, 15, 18, 19, 20, 21, 23, 24, 25}


def test_every_complaint_about_a_plugin_has_a_test_in_vs_code() -> None:
    found: set[int] = set()
    for path in (Path(__file__).parent / "vscode").glob("*.test.ts"):
        for title in re.findall(r'^test\("([^"]*)"', path.read_text(), re.MULTILINE):
            found |= {int(number) for number in re.findall(r"complaint (\d+)", title)}
    assert found == VSCODE
    assert set(SERVER) | set(PLUGINS) >= VSCODE


# And Neovim's plugin; its tests carry the same marks.
NEOVIM = {1, 2, 3, 5, 6, 7, 11, 13, 14, 18, 19, 20, 21, 22, 23, 24}


def test_every_complaint_about_a_plugin_has_a_test_in_neovim() -> None:
    found: set[int] = set()
    for path in (Path(__file__).parent / "editors").glob("test_*.py"):
        numbers = re.findall(r"mark\.complaint\((\d+)\)", path.read_text())
        found |= {int(number) for number in numbers}
    assert found == NEOVIM
    assert set(PLUGINS) <= NEOVIM

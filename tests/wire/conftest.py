"""Workers of each test's own: nothing here meets the worker of the person who runs it."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import torch

from frostline.models import registry
from frostline.models.backend import MaskedBackend
from frostline.wire import client
from models import tiny

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny model without pads: a run takes exactly as many steps as it has slots."""
    return tiny.make(tmp_path_factory.mktemp("tiny"), length={"kind": "fixed"}, max_context=1024)


@pytest.fixture(scope="session")
def backend(folder: Path) -> MaskedBackend:
    """The tiny model, loaded in this process."""
    return registry.load(str(folder), "cpu")


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime directory of this test's own, not made yet."""
    with a_runtime(monkeypatch) as path:
        yield path


@contextlib.contextmanager
def a_runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set a runtime directory; whatever worker is left in it is ended."""
    # pytest's own folders have names too long for a socket on some systems.
    with tempfile.TemporaryDirectory(prefix="frostline-") as folder:
        path = Path(folder) / "r"
        monkeypatch.setenv("FROSTLINE_RUNTIME_DIR", str(path))
        try:
            yield path
        finally:
            end(path)


def end(runtime: Path) -> None:
    """End the workers of a runtime directory."""
    for process in workers(runtime):
        # One that ends on its own meanwhile is as good.
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
            process.wait()
    for started in client._started:
        started.poll()


def workers(runtime: Path) -> list[psutil.Process]:
    """Return the worker processes of a runtime directory."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or ()
        if "worker" in words and any(word.startswith(str(runtime)) for word in words):
            found.append(process)
    return found

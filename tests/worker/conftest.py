"""One thread: these models are tiny, and the machine is shared."""

from pathlib import Path

import pytest
import torch

from frostline.models import registry
from frostline.models.backend import MaskedBackend
from models import tiny

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny model; not to be changed."""
    return tiny.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def backend(folder: Path) -> MaskedBackend:
    """A tiny model, loaded."""
    return registry.load(str(folder), "cpu")

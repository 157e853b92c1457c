"""One tiny model for all tests of the recipe: trained once, on a piece of the standard library."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the recipe needs the `local` extra")

from frostline import train

Command = Callable[..., int]


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Run `frostline train` with these options and one folder of data for all."""
    data = tmp_path_factory.mktemp("data")

    def run(*options: str) -> int:
        parser = argparse.ArgumentParser()
        train.add_arguments(parser)
        return train.main(parser.parse_args(["--data", str(data), "--device", "cpu", *options]))

    return run


@pytest.fixture(scope="session")
def trained(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny model after 60 steps, seed 0."""
    out = tmp_path_factory.mktemp("tiny") / "model"
    assert command("--size", "tiny", "--steps", "60", "--out", str(out)) == 0
    return out

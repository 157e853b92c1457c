"""Real servers over stdio, with the real worker or with a script."""

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from frostline.cli.client import EditorClient, editor
from frostline.config import Settings

SERVER = (sys.executable, "-P", "-m", "frostline", "lsp")
# One thread, as the machine is shared; a worker of the tests' own runtime directory.
REAL = Settings(threads=1)

Scripted = Callable[..., AbstractAsyncContextManager[EditorClient]]


@pytest.fixture
async def client() -> AsyncIterator[EditorClient]:
    """A client with the extension, on the real worker."""
    async with editor(REAL, *SERVER, patience_s=60) as client:
        yield client


@pytest.fixture
def scripted(tmp_path: Path) -> Scripted:
    """Start a server whose worker plays `runs`: for each request and gap its canvases."""

    @asynccontextmanager
    async def start(
        runs: list[list[list[str]]],
        pause_ms: float = 10,
        own_settings: bool = True,
        lost_after: int | None = None,
        **options: Any,
    ) -> AsyncIterator[EditorClient]:
        script = tmp_path / "script.json"
        recording = {"runs": runs, "pause_ms": pause_ms, "lost_after": lost_after}
        script.write_text(json.dumps(recording))
        settings = Settings() if own_settings else None
        async with editor(
            settings, *SERVER, "--worker", f"scripted:{script}", patience_s=30, **options
        ) as client:
            yield client

    return start

"""What all tests share: no settings of the person who runs them, and workers of their own."""

import os
import tempfile
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

_RUNTIME = tempfile.TemporaryDirectory(prefix="frostline-tests-")
os.environ["FROSTLINE_RUNTIME_DIR"] = _RUNTIME.name
os.environ["FROSTLINE_CONFIG"] = str(Path(_RUNTIME.name) / "no-settings.toml")

# Deadlines are timings, and a shared machine has none that mean anything.
settings.register_profile("frostline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "long",
    deadline=None,
    max_examples=3000,
    stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("frostline")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden parts of case files")


@pytest.fixture(scope="session", autouse=True)
def _no_worker_stays() -> object:
    """End the workers that these tests started; others' are not touched."""
    yield
    for process in psutil.process_iter(["cmdline"]):
        if any(_RUNTIME.name in part for part in process.info["cmdline"] or ()):
            process.kill()
    _RUNTIME.cleanup()

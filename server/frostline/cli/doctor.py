"""`frostline doctor`: what works here, and what to do about what does not.

Each check is run, not looked up: the server is started, the worker is started, a gap is filled.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import importlib.util
import json
import platform
import time
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from frostline import __version__, config
from frostline.cli import settings_from
from frostline.cli.client import editor
from frostline.config import Settings
from frostline.core.text import Span
from frostline.errors import FrostlineError
from frostline.lsp import extension as ext

_STACK = ("torch", "transformers", "safetensors", "tokenizers")
_SOURCE = "def double(number):\n    return \n"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. `advice` says what to do when it is not ok."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def missing_for_models() -> str:
    """Return a sentence when packages for running models are missing here, else nothing."""
    missing = [name for name in _STACK if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    return f"{', '.join(missing)} not installed; run: pip install '.[local]' in Frostline's sources"


def run(args: argparse.Namespace) -> int:
    """Run `frostline doctor`."""
    if args.settings:
        return _print_settings(json_wanted=args.json)
    settings = settings_from(args)
    checks, facts = asyncio.run(_checked(settings))
    if args.json:
        print(
            json.dumps({"ok": all(c.ok for c in checks), "checks": [*map(asdict, checks)], **facts})
        )
    else:
        for check in checks:
            print(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<18} {check.found}")
            if not check.ok and check.advice:
                print(f"      {'':<18} → {check.advice}")
    return 0 if all(check.ok for check in checks) else 1


async def _checked(settings: Settings) -> tuple[list[Check], dict[str, Any]]:
    checks = [
        Check("frostline", True, f"{__version__} on Python {platform.python_version()}"),
        Check("settings", True, str(config.settings_file())),
    ]
    missing = missing_for_models()
    versions = ", ".join(f"{name} {_version(name)}" for name in _STACK[:2]) if not missing else ""
    checks.append(Check("model packages", not missing, versions or "not all there", missing))
    facts: dict[str, Any] = {"server_rss_bytes": None}
    try:
        async with editor(settings) as client:
            rss = psutil.Process(client.process.pid).memory_info().rss
            facts["server_rss_bytes"] = rss
            checks.append(
                Check("language server", True, f"answers; {rss / 2**20:.0f} MiB without a model")
            )
            if not missing:
                checks += await _model_checks(client, settings)
    except (FrostlineError, OSError) as error:
        checks.append(Check("language server", False, str(error), "run `frostline lsp` to see why"))
    return checks, facts


async def _model_checks(client: Any, settings: Settings) -> list[Check]:
    began = time.monotonic()
    document = client.open("untitled:doctor.py", "python", _SOURCE)
    gap = len(_SOURCE) - 1
    begun = await client.begin(document, Span(gap, gap))
    if "refusal" in begun:
        told = begun["refusal"]["message"]
        return [Check("model", False, told, "see `frostline doctor --settings`")]
    ended = await client.state(begun["session"], "ready", "refused", "cancelled")
    took = time.monotonic() - began
    status = await client.extension(ext.STATUS, {})
    refusal = ended.get("refusal")
    worked = bool(client.shown(begun["session"]))
    found = f"{status.get('model')} on {status.get('device')}, first draft after {took:.1f} s"
    if not worked:
        told = refusal["message"] if refusal else "no draft came"
        return [Check("model", False, told, "see `frostline models` and the setting `model`")]
    memory = status.get("memory") or 0
    limits = " ".join(status.get("cannot", ())) or "nothing that is asked of models here"
    return [
        Check("model", True, found),
        Check("cannot", True, limits),
        Check("worker", True, f"private socket; {memory / 2**20:.0f} MiB with the model"),
    ]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "?"


def _print_settings(*, json_wanted: bool) -> int:
    rows = config.described()
    if json_wanted:
        print(json.dumps([{"name": n, "default": d, "meaning": m} for n, d, m in rows]))
        return 0
    for name, default, meaning in rows:
        print(f"{name} = {json.dumps(default)}\n    {meaning}")
    print(
        f"\nset them in {config.settings_file()} (TOML), or in the editor's settings for the server"
    )
    return 0

"""`frostline models`: which models can be used, and what they can do."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from frostline.config import EMBEDDED
from frostline.errors import ModelUnusable


def described(name: str) -> dict[str, Any]:
    """Return what a model folder says of itself, or why it cannot be used. Loads no weights."""
    from frostline.models import folder as folders

    try:
        folder = folders.folder_of(name)
        read = folders.read(folder)
    except ModelUnusable as error:
        return {"model": name, "usable": False, "problem": str(error)}
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    return {
        "model": name,
        "usable": size > 0,
        "name": read.name,
        "bytes": size,
        "sees": read.sees,
        "length": read.length.kind,
        "instruction": read.instruction,
        "max_context": read.max_context,
        "trained_on": read.trained_on,
    }


def run(args: argparse.Namespace) -> int:
    """Run `frostline models`."""
    from frostline.cli.doctor import missing_for_models

    if missing := missing_for_models():
        print(f"no model can be run here yet: {missing}")
        return 1
    found = [described(name) for name in (EMBEDDED, *(str(Path(one)) for one in args.folders))]
    if args.json:
        print(json.dumps({"models": found}))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table("model", "size", "context", "sees", "length", "instruction", "trained on")
    for one in found:
        if not one["usable"]:
            table.add_row(one["model"], one.get("problem", "no weights"))
            continue
        table.add_row(
            one["model"],
            f"{one['bytes'] / 1e6:.0f} MB",
            f"{one['max_context']} tokens",
            one["sees"],
            one["length"],
            "yes" if one["instruction"] else "no",
            one["trained_on"] or "–",
        )
    Console().print(table)
    return 0

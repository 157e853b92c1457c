"""`frostline models`: which models can be used and what they can do; pull, verify and remove them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frostline import config
from frostline.config import EMBEDDED
from frostline.errors import ModelUnusable


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    command.set_defaults(run=list_all, folders=[])
    json_too = argparse.ArgumentParser(add_help=False)
    # Given before the subcommand it holds as well.
    json_too.add_argument("--json", action="store_true", default=argparse.SUPPRESS)
    command.add_argument("--json", action="store_true")
    what = command.add_subparsers(title="what to do", metavar="ACTION")

    def action(
        name: str, run: Callable[[argparse.Namespace], int], help: str
    ) -> argparse.ArgumentParser:
        one = what.add_parser(
            name, parents=[json_too], help=help, description=help[0].upper() + help[1:] + "."
        )
        one.set_defaults(run=run)
        return one

    one = action("list", list_all, "list the models that are here, and what they can do")
    one.add_argument("folders", nargs="*", type=Path, help="model folders to look at as well")
    one = action("pull", pull, "fetch a model from the hub, its licence shown first")
    one.add_argument("name", metavar="OWNER/NAME")
    one.add_argument("--revision", help="a commit, tag or branch (default: the newest)")
    one.add_argument("--yes", action="store_true", help="do not ask")
    one = action("verify", verify, "compare a pulled model's files with their published hashes")
    one.add_argument("name", metavar="OWNER/NAME")
    one = action("path", path, "print the folder of a model")
    one.add_argument("name", metavar="NAME")
    one = action("remove", remove, "delete a pulled model")
    one.add_argument("name", metavar="OWNER/NAME")


def described(name: str, licence: str = "") -> dict[str, Any]:
    """Return what a model says of itself, or why it cannot be used. Loads no weights."""
    from frostline.models import folder as folders

    try:
        folder = folders.folder_of(name)
        read = folders.read(folder)
    except ModelUnusable as error:
        return {"model": name, "usable": False, "problem": str(error)}
    files = [folder] if folder.is_file() else folder.glob("*.safetensors")
    size = sum(path.stat().st_size for path in files)
    return {
        "model": name,
        "usable": size > 0,
        "name": read.name,
        "bytes": size,
        "licence": licence,
        "sees": read.sees,
        "length": read.length.kind,
        "instruction": read.instruction,
        "drafts": True,
        "max_context": read.max_context,
        "trained_on": read.trained_on,
        "cannot": read.cannot,
    }


def list_all(args: argparse.Namespace) -> int:
    """Run `frostline models list`."""
    from frostline.cli.doctor import missing_for_models

    if missing := missing_for_models():
        print(f"no model can be run here yet: {missing}")
        return 1
    from frostline.models import store

    found = [described(EMBEDDED, "Apache-2.0")]
    found += [described(one.name, one.licence) for one in store.pulled()]
    found += [described(str(one)) for one in args.folders]
    if args.json:
        print(json.dumps({"models": found}))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table("model", "size", "licence", "context", "sees", "length", "instruction", "drafts")
    for one in found:
        if not one["usable"]:
            table.add_row(one["model"], one.get("problem", "no weights"))
            continue
        table.add_row(
            one["model"],
            _size(one["bytes"]),
            one["licence"] or "not said",
            f"{one['max_context']} tokens",
            one["sees"],
            one["length"].replace("_", " "),
            "yes" if one["instruction"] else "no",
            "yes" if one["drafts"] else "no",
        )
    Console().print(table)
    return 0


def pull(args: argparse.Namespace) -> int:
    """Run `frostline models pull`."""
    try:
        import huggingface_hub  # noqa: F401 - is it there at all?
    except ImportError:
        raise ModelUnusable(
            "pulling needs huggingface_hub; run: pip install '.[local]' in Frostline's sources"
        ) from None
    from frostline.models import store
    from frostline.models.hub import HuggingFace

    hub = HuggingFace()
    model = store.wanted(hub.describe(args.name, args.revision))
    if any(one == model for one in store.pulled()) and not store.verify(model):
        return _pulled(args, model.name, model.revision, "already here")
    # To the person, not into what a program reads.
    print(
        f"{model.name} at {model.revision[:12]}: licence {model.licence or 'not said by its makers'}, "
        f"{_size(model.bytes)} in {len(model.files)} files",
        file=sys.stderr,
    )
    if not (args.yes or args.json) and sys.stdin.isatty() and not _agreed():
        print("nothing was pulled", file=sys.stderr)
        return 1
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("pull", total=model.bytes)
        store.pull(model, hub, lambda count: bar.update(task, advance=count))
    return _pulled(args, model.name, model.revision, "pulled")


def _agreed() -> bool:
    print("pull it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _pulled(args: argparse.Namespace, name: str, revision: str, what: str) -> int:
    folder = config.pulled_folder(name)
    if args.json:
        print(json.dumps({"model": name, "revision": revision, "path": str(folder)}))
    else:
        print(f'{what}: {folder}\nuse it with `model = "{name}"` in {config.settings_file()}')
    return 0


def verify(args: argparse.Namespace) -> int:
    """Run `frostline models verify`."""
    from frostline.models import store

    model = store.found(args.name)
    wrong = store.verify(model)
    if args.json:
        problems = [{"file": one.file, "problem": one.what} for one in wrong]
        print(json.dumps({"model": model.name, "ok": not wrong, "problems": problems}))
    elif wrong:
        for one in wrong:
            print(f"{one.file} {one.what}")
        print(f"pull it again with `frostline models pull {model.name}`")
    else:
        print(f"{model.name}: {len(model.files)} files, as published at {model.revision[:12]}")
    return 1 if wrong else 0


def path(args: argparse.Namespace) -> int:
    """Run `frostline models path`."""
    from frostline.models import folder as folders

    folder = folders.folder_of(args.name)
    print(json.dumps({"model": args.name, "path": str(folder)}) if args.json else folder)
    return 0


def remove(args: argparse.Namespace) -> int:
    """Run `frostline models remove`."""
    from frostline.models import store

    model = store.found(args.name)
    store.remove(model)
    if args.json:
        print(json.dumps({"model": model.name, "freed": model.bytes}))
    else:
        print(f"removed {model.name}: {_size(model.bytes)} are free again")
    return 0


def _size(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"

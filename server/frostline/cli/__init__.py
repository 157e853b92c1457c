"""The command line. The one part that knows every other; each import waits for its command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from frostline import __version__, config
from frostline.errors import FrostlineError, UsageError

_EXAMPLES = """\
examples:
  frostline demo                         watch a hole denoise, and commit
  frostline fill app.py:12:9             fill the gap at line 12, column 9; prints a diff
  frostline fill app.py:12 --body        fill the body of the function around line 12
  frostline rewrite app.py:3-8 --strength 0.4 --write
  frostline doctor                       what works here, and what to do about what does not
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status: 0 done, 1 failed or refused, 2 wrong use."""
    parser = _parser()
    args = parser.parse_args(arguments)
    if not hasattr(args, "run"):
        parser.print_help()
        return 2
    try:
        status: int = args.run(args)
        return status
    except UsageError as error:
        print(f"frostline: {error}", file=sys.stderr)
        return 2
    except FrostlineError as error:
        print(f"frostline: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output left; there is nobody to tell.
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="frostline",
        description="Freezes your code and denoises only what you select.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"frostline {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for add in (_demo, _lsp, _worker, _fill, _rewrite, _models, _doctor, _bench, _train):
        add(commands)
    return parser


# What add_subparsers gives; argparse has no public name for it.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _command(commands: Commands, name: str, help: str, example: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=help,
        description=help[0].upper() + help[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _settings_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--model", help="'embedded', a model's folder or GGUF file (default: the settings')"
    )
    command.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"))
    command.add_argument("--threads", type=int, help="processor threads of the model")


def _draft_options(command: argparse.ArgumentParser) -> None:
    _settings_options(command)
    command.add_argument("--steps", type=int, help="budget of denoise steps")
    command.add_argument("--length", type=int, help="token slots for each hole")
    command.add_argument("--seed", type=int, default=0, help="another draft (0 is greedy)")
    command.add_argument("--write", action="store_true", help="change the file; else only show")
    command.add_argument("--json", action="store_true", help="print one JSON object")


def _demo(commands: Commands) -> None:
    command = _command(
        commands, "demo", "watch the real server and model fill a hole", "frostline demo"
    )
    _settings_options(command)
    command.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    command.add_argument(
        "--delay", type=int, default=60, metavar="MS", help="pause after each drawn step"
    )
    command.add_argument(
        "--svg", type=Path, metavar="FILE", help="also save the last picture as SVG"
    )

    def run(args: argparse.Namespace) -> int:
        from frostline.cli import demo

        return demo.run(args)

    command.set_defaults(run=run)


def _lsp(commands: Commands) -> None:
    command = _command(
        commands, "lsp", "serve an editor on standard input and output", "frostline lsp"
    )
    _settings_options(command)
    command.add_argument("--log", type=Path, metavar="FILE", help="write what goes on to FILE")
    command.add_argument("--worker", help="scripted:FILE plays recorded steps instead of a model")
    command.add_argument(
        "--stdio", action="store_true", help="what it does anyway; some editors say it"
    )

    def run(args: argparse.Namespace) -> int:
        from frostline.lsp import server

        server.run(settings_from(args), given(args), args.log)
        return 0

    command.set_defaults(run=run)


def _worker(commands: Commands) -> None:
    command = _command(
        commands,
        "worker",
        "run the process that owns a model (started on demand by the server)",
        "frostline worker --socket /run/user/1000/frostline/w.sock --model embedded",
    )
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", type=Path, help="Unix socket to listen at, mode 0600")
    where.add_argument(
        "--tcp", type=Path, metavar="FILE", help="listen on a local port; FILE gets port and token"
    )
    command.add_argument("--model", default="embedded")
    command.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda", "mps"))
    command.add_argument("--threads", type=int, default=0)
    command.add_argument(
        "--idle", type=float, default=900.0, metavar="S", help="unload after this long"
    )

    def run(args: argparse.Namespace) -> int:
        from frostline.wire.address import Address
        from frostline.worker import main as worker

        address = Address(args.socket or args.tcp, tcp=args.tcp is not None)
        worker.run(address, worker.Options(args.model, args.device, args.threads, args.idle))
        return 0

    command.set_defaults(run=run)


def _fill(commands: Commands) -> None:
    command = _command(
        commands,
        "fill",
        "fill a gap: at a place, in a range, the body of a function, or all unfinished bodies",
        "frostline fill app.py:12:9 --write",
    )
    command.add_argument("place", metavar="FILE[:LINE[:COL]]", help="counted from 1")
    command.add_argument("--range", metavar="L:C-L:C", help="fill this range, ends excluded")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--body", action="store_true", help="the body of the function around LINE")
    what.add_argument(
        "--stubs", action="store_true", help="all unfinished bodies of the class or file"
    )
    _draft_options(command)

    def run(args: argparse.Namespace) -> int:
        from frostline.cli import fill

        return fill.fill(args)

    command.set_defaults(run=run)


def _rewrite(commands: Commands) -> None:
    command = _command(
        commands,
        "rewrite",
        "denoise lines again from what stands there",
        "frostline rewrite app.py:3-8 --strength 0.5",
    )
    command.add_argument(
        "place", metavar="FILE:LINE[-LINE]", help="lines counted from 1, both included"
    )
    command.add_argument(
        "--strength",
        type=float,
        default=0.6,
        help="share of the old text to noise, 0 to 1 (default 0.6)",
    )
    command.add_argument("--instruction", default="", help="for models that follow one")
    _draft_options(command)

    def run(args: argparse.Namespace) -> int:
        from frostline.cli import fill

        return fill.rewrite(args)

    command.set_defaults(run=run)


def _models(commands: Commands) -> None:
    from frostline.cli import models

    command = _command(
        commands,
        "models",
        "list the models that can be used; pull, verify and remove them",
        "frostline models pull Dream-org/DreamOn-v0-7B",
    )
    models.add_arguments(command)


def _doctor(commands: Commands) -> None:
    command = _command(
        commands,
        "doctor",
        "say what works here, and what to do about what does not",
        "frostline doctor",
    )
    _settings_options(command)
    command.add_argument("--settings", action="store_true", help="list all settings instead")
    command.add_argument("--json", action="store_true")

    def run(args: argparse.Namespace) -> int:
        from frostline.cli import doctor

        return doctor.run(args)

    command.set_defaults(run=run)


def _bench(commands: Commands) -> None:
    command = _command(
        commands,
        "bench",
        "measure steps, texts and memory here, beside the plain loop",
        "frostline bench --quick",
    )
    _settings_options(command)
    command.add_argument("--quick", action="store_true", help="a first idea, within 50 seconds")
    command.add_argument("--holes", type=int, metavar="N", help="holes to fill (60; quick: 6)")
    command.add_argument(
        "--folder", type=Path, metavar="DIR", help="cut holes from its Python files"
    )
    command.add_argument("--seed", type=int, default=0, help="other holes")
    command.add_argument(
        "--reference",
        type=Path,
        metavar="FILE",
        help="run this Python file's generate(model, prompt, ...) beside ours",
    )
    command.add_argument(
        "--json", action="store_true", help="no tables; the last line is JSON anyway"
    )

    def run(args: argparse.Namespace) -> int:
        from frostline.cli import bench

        return bench.run(args)

    command.set_defaults(run=run)


def _train(commands: Commands) -> None:
    # Its options are described beside the recipe; the module that has them loads nothing heavy.
    from frostline.train import command as recipe

    command = _command(commands, "train", "train a model of the embedded form", recipe.EXAMPLE)
    recipe.add_arguments(command)

    def run(args: argparse.Namespace) -> int:
        return recipe.main(args)

    command.set_defaults(run=run)


def settings_from(args: argparse.Namespace) -> config.Settings:
    """Return the user's settings with those of the command line on top."""
    return config.load().updated(given(args))


def given(args: argparse.Namespace) -> dict[str, object]:
    """Return the settings that the command line names."""
    values = {name: getattr(args, name, None) for name in ("model", "device", "threads", "worker")}
    return {name: value for name, value in values.items() if value is not None}

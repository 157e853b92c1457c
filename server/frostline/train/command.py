"""`frostline train`: from a list of packages, or from weights, to better weights; and its figures."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLE = "frostline train --hours 0.02 --out my-model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command. Loads nothing heavy."""
    option = parser.add_argument
    option("--out", type=Path, metavar="DIR", help="folder of the new model")
    option(
        "--export",
        type=Path,
        metavar="DIR",
        help="at the end also write the model here, without checkpoints and in files of at most 60 MB, "
        "to carry it; with --resume: of a run that has ended",
    )
    option("--hours", type=float, help="budget of training time (default 1; tiny: 0.01)")
    option("--steps", type=int, help="budget in steps instead: the same seed, the same weights")
    option(
        "--from",
        dest="origin",
        type=Path,
        metavar="DIR",
        help="go on from the weights of a folder, or from a .safetensors file of the embedded form",
    )
    option(
        "--resume",
        action="store_true",
        help="go on with the run in --out; with more --hours than before, from its stable phase",
    )
    option(
        "--packages",
        type=int,
        metavar="N",
        help="learn from the first N packages of the list, which pip fetches; 0: the standard "
        "library alone (default: 0 up to a quarter of an hour, else all)",
    )
    option(
        "--data",
        type=Path,
        metavar="DIR",
        help="packages and shards (default: in the user's cache)",
    )
    option(
        "--prepare",
        action="store_true",
        help="only fetch and write the data, to carry --data to a machine that reaches no index",
    )
    option(
        "--cases",
        type=Path,
        metavar="DIR",
        help="texts that must not be learnt, besides HumanEval and the recipe's own; with --evaluate: "
        "a fixed set of holes to ask, instead of some drawn in held-out packages",
    )
    option("--device", default="auto", choices=("auto", "cpu", "cuda", "mps"))
    option("--threads", type=int, default=0, help="processor threads (default: torch's own choice)")
    option(
        "--precision",
        default="auto",
        choices=("auto", "fp32", "bf16"),
        help="auto: whatever this machine multiplies faster",
    )
    option(
        "--compile",
        default="auto",
        choices=("auto", "on", "off"),
        help="fuse the layers first, which takes minutes; auto: on a GPU, and on a processor with "
        "a C++ compiler in runs of half an hour and more",
    )
    option("--seed", type=int, default=0)
    option(
        "--size",
        default="base",
        choices=("tiny", "base", "large"),
        help="base: the embedded model's; tiny: to see it all work in a minute; large: for a GPU",
    )
    option(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="PART.NAME=VALUE",
        help="change one number of the recipe, for an experiment: recipe.whole=0.5; may be repeated",
    )
    option("--json", action="store_true", help="one JSON object a line")
    figures = parser.add_argument_group("figures, instead of training")
    figures.add_argument(
        "--evaluate",
        nargs="+",
        type=Path,
        metavar="DIR",
        help="fill held-out holes with each of these models; print one table",
    )
    figures.add_argument("--holes", type=int, default=150, help="of each kind (default 150)")
    figures.add_argument(
        "--write-card", action="store_true", help="also put the table into the CARD.md of the first"
    )


def main(args: argparse.Namespace) -> int:
    """Run the command; return its exit status: 0 done, 1 stopped before the budget was used."""
    from frostline.train import session

    if args.evaluate:
        return session.evaluate(args)
    return session.prepare(args) if args.prepare else session.train(args)

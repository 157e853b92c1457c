"""What to do with a draft when its context changes: draft again, or look again at the draft there is.

    python tests/bench/typing_beside.py [--holes 40] [--model embedded] [--json]

For holes in this package's own sources a draft is made; then a name near the hole is renamed
everywhere outside of it, as an edit while denoising would, and the new context is given both ways:
from noise, and with the old draft as the start, of which the least likely 30 % are noised (what a
session does). The figures are forwards of each way, how often and how far the two agree, and how much
of the old draft each keeps: calm is what a user sees.
"""

from __future__ import annotations

import argparse
import difflib
import json
import random
import re
import statistics
from pathlib import Path

import torch

import frostline
from frostline.core.session import RECHECK_STRENGTH
from frostline.models import registry
from frostline.wire import messages as wire
from frostline.worker.engine import Engine

_LINE = re.compile(r"^( +)(return|[a-z_]+ = )(.{12,60})$", re.MULTILINE)
_NAME = re.compile(r"\b[a-z_]{4,}\b")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--holes", type=int, default=40)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    engine = Engine(registry.load(args.model, "cpu"))
    rows = [measured(engine, *hole) for hole in holes(args.holes)]
    result = {
        "holes": len(rows),
        "forwards_from_noise": statistics.mean(row["noise"] for row in rows),
        "forwards_from_draft": statistics.mean(row["warm"] for row in rows),
        "same_text": statistics.mean(row["same"] for row in rows),
        "alike": statistics.mean(row["alike"] for row in rows),
        "kept_from_noise": statistics.mean(row["kept_noise"] for row in rows),
        "kept_from_draft": statistics.mean(row["kept_warm"] for row in rows),
    }
    result = {name: round(value, 3) for name, value in result.items()}
    print(json.dumps(result) if args.json else "\n".join(f"{k:<22}{v}" for k, v in result.items()))


def holes(count: int) -> list[tuple[str, str, str]]:
    """Return (before, hole, behind) of lines in this package, always the same ones."""
    chance = random.Random(0)
    found = []
    for path in sorted(Path(frostline.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for match in _LINE.finditer(text):
            start, end = match.start(3), match.end(3)
            found.append(
                (text[max(start - 600, 0) : start], text[start:end], text[end : end + 300])
            )
    return chance.sample(found, count)


def measured(engine: Engine, before: str, old: str, behind: str) -> dict[str, float]:
    first, _ = run(engine, before, behind, old, 1.0)
    names = _NAME.findall(before[-200:]) or ["self"]
    renamed = [re.sub(rf"\b{names[-1]}\b", "renamed", part) for part in (before, behind)]
    fresh, from_noise = run(engine, *renamed, old, 1.0)
    looked, from_draft = run(engine, *renamed, first, RECHECK_STRENGTH)
    return {
        "noise": from_noise,
        "warm": from_draft,
        "same": fresh == looked,
        "alike": alike(fresh, looked),
        "kept_noise": alike(first, fresh),
        "kept_warm": alike(first, looked),
    }


def run(engine: Engine, before: str, behind: str, old: str, strength: float) -> tuple[str, int]:
    gap = wire.Gap(0, old=old, multiline=False)
    asked = wire.Infill("r", (wire.Text(before), gap, wire.Text(behind)), strength=strength)
    *_, done = engine.draft(asked)
    assert isinstance(done, wire.Done)
    return done.gaps[0].text, done.figures.forwards


def alike(first: str, second: str) -> float:
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio()


if __name__ == "__main__":
    main()

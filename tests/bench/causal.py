"""The autoregressive peer on real weights: is refinement what plain decoding writes, and what does it cost?

    python tests/bench/fetch_qwen_coder.py ~/weights
    python tests/bench/causal.py ~/weights/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf [--holes 200]

Holes are cut from the sources of installed packages (pip and Pygments): nine of ten are the rest of a
line, one of ten is two or three whole lines. Each is filled token by token, then refined from
nothing, from n-grams of its surroundings, and from the text that the file has there. Equal means: the
same tokens. Passes of different shapes add up in different order, so where two tokens are as likely
as makes no difference either may come out; such a hole is counted as different, and the difference of
the two logits is printed. Exact match compares with the file, white space at the ends apart.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pip
import pygments
import torch
from torch import Tensor

from frostline.decoding.jacobi import AHEAD, greedy
from frostline.decoding.loop import Step
from frostline.models import registry
from frostline.wire import messages as wire
from frostline.worker import canvas as canvases
from frostline.worker import causal

LINE = re.compile(r"^( +)((?:return|raise|if|for|with|[a-z_.]+ =) )(.{4,40})$", re.MULTILINE)
BLOCK = re.compile(
    r"^( {4,})((?=\S)(?!def |class |@)(?:.{8,60}\n\1(?=\S)){1,2}.{8,60})$", re.MULTILINE
)
STARTS: tuple[causal.Start, ...] = ("nothing", "ngrams", "old")


@dataclass(frozen=True)
class Hole:
    before: str
    old: str
    behind: str
    multiline: bool


@dataclass
class Sum:
    holes: int = 0
    exact: int = 0
    ended: int = 0
    tokens: int = 0
    seconds: float = 0.0
    equal: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STARTS, 0))
    forwards: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STARTS, 0))
    took: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STARTS, 0.0))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--holes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--part", default="1/1", help="2/3 is the second of three parts of the holes"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    backend = registry.load(args.model, "cpu")
    limits = causal.limits(backend)
    sums = {"lines": Sum(), "blocks": Sum()}
    part, parts = map(int, args.part.split("/"))
    for number, hole in list(enumerate(holes(args.holes, args.seed)))[part - 1 :: parts]:
        kind = "blocks" if hole.multiline else "lines"
        row = measured(backend, limits, hole, sums[kind])
        print(json.dumps({"hole": number, "kind": kind, **row}), file=sys.stderr, flush=True)
    print(json.dumps({name: vars(one) for name, one in sums.items()}) if args.json else table(sums))


def holes(count: int, seed: int) -> list[Hole]:
    """Return holes of installed files, always the same ones for a seed."""
    chance = random.Random(seed)
    found: dict[bool, list[Hole]] = {False: [], True: []}
    for package in (pip, pygments):
        for path in sorted(Path(package.__file__).parent.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for multiline, pattern, group in ((False, LINE, 3), (True, BLOCK, 2)):
                for match in pattern.finditer(text):
                    start, end = match.span(group)
                    before, behind = text[max(start - 400, 0) : start], text[end : end + 200]
                    found[multiline].append(Hole(before, text[start:end], behind, multiline))
    blocks = count // 10
    chosen = chance.sample(found[False], count - blocks) + chance.sample(found[True], blocks)
    chance.shuffle(chosen)
    return chosen


def measured(backend: Any, limits: causal.Limits, hole: Hole, total: Sum) -> dict[str, Any]:
    room = 32 if hole.multiline else 16
    gap = wire.Gap(0, old=hole.old, multiline=hole.multiline, room=room)
    parts = (wire.Text(hole.before), gap, wire.Text(hole.behind))
    canvas = canvases.build(parts, "", backend, at_start=False)
    plain, plain_s, margins = plainly(backend, limits, canvas)
    end = backend.fim.ends[0]
    length = int((plain != end).sum())
    text = backend.tokens.spell(plain[:length].tolist()).decode(errors="replace")
    total.holes += 1
    total.exact += text.strip() == hole.old.strip()
    total.ended += length < len(plain)
    total.tokens += min(length + 1, len(plain))
    total.seconds += plain_s
    row: dict[str, Any] = {"old": hole.old, "text": text, "tokens": length, "s": round(plain_s, 2)}
    for start in STARTS:
        began = time.perf_counter()
        run = backend.open(canvas)
        steps = causal.drafted(canvas, run, backend, limits, wire.Decoding(), start, blind=AHEAD)
        last = last_of(steps)
        total.took[start] += time.perf_counter() - began
        total.forwards[start] += run.forwards
        differs = (last.tokens != plain).nonzero()
        total.equal[start] += not len(differs)
        row[f"from {start}"] = run.forwards
        if len(differs):
            row[f"{start} differs by"] = margins[int(differs[0])]
    return row


def plainly(
    backend: Any, limits: causal.Limits, canvas: canvases.Canvas
) -> tuple[Tensor, float, list[float]]:
    """Return the tokens of plain decoding, its seconds, and how far each was ahead of the second."""
    margins: list[float] = []
    began = time.perf_counter()
    filling = backend.open(canvas).at(0, backend.noise(len(canvas.slots)))
    possible = limits.of(canvas.gaps[0])

    def watched(logits: Tensor, tokens: Tensor, first: int) -> Tensor:
        logits = possible(logits, tokens, first)
        best = logits[0].topk(2).values
        margins.append(float(best[0] - best[1]))
        return logits

    last = last_of(greedy(len(canvas.slots), filling.score, watched, backend.fim.ends[0]))
    return last.tokens, time.perf_counter() - began, margins


def last_of(steps: Iterator[Step]) -> Step:
    *_, last = steps
    return last


def table(sums: dict[str, Sum]) -> str:
    rows = []
    for kind, one in sums.items():
        many = max(one.holes, 1)
        rows += [
            f"{kind}: {one.holes} holes, {one.tokens} tokens with their ends",
            f"  exact match         {one.exact / many:.1%}",
            f"  ended by themselves {one.ended / many:.1%}",
            f"  {'start':<10}{'equal':>12}{'forwards/token':>16}{'seconds/hole':>14}",
            f"  {'greedy':<10}{'':>12}{1:>16.3f}{one.seconds / many:>14.2f}",
        ]
        for start in STARTS:
            rows.append(
                f"  {start:<10}{f'{one.equal[start]}/{one.holes}':>12}"
                f"{one.forwards[start] / max(one.tokens, 1):>16.3f}{one.took[start] / many:>14.2f}"
            )
    return "\n".join(rows)


if __name__ == "__main__":
    main()

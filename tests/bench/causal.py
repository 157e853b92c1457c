"""The autoregressive peer on real weights: is refinement what plain decoding writes, and what does it cost?

    python tests/bench/fetch_qwen_coder.py ~/weights
    python tests/bench/causal.py ~/weights/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf [--holes 40]

Holes are those of `frostline bench`: statements and ends of lines of installed packages, 4 to 24 tokens.
Each is filled token by token, then refined from nothing, from n-grams of its surroundings, and from
the text that the file has there, the ways taking turns. Equal means: the same tokens. Looks of different
shapes add up in different order, so where two tokens are as likely as makes no difference either may
come out; such a hole is counted as different, and by how much the two logits differ is printed. Time
is the processor's; the prompt is read anew for each way and counted apart, as it costs all the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from frostline.decoding.jacobi import PLAIN, Widths
from frostline.evals import holes
from frostline.evals.holes import Case
from frostline.models import registry
from frostline.models.causal import CausalBackend
from frostline.models.memory import Memory
from frostline.wire import messages as wire
from frostline.worker import canvas as canvases
from frostline.worker.causal import Writing
from frostline.worker.vocabulary import Vocabulary

# Slots beyond those of the text that stood there: what goes on for longer is cut, in all ways alike.
SPARE = 8
MOST_TOKENS = 24


class Plain(Writing):
    start = "nothing"
    widths = PLAIN


class Empty(Writing):
    start = "nothing"
    widths = Widths()


class NGrams(Writing):
    start = "ngrams"


class Old(Writing):
    start = "old"


WAYS: dict[str, type[Writing]] = {
    "token by token": Plain,
    "from nothing": Empty,
    "from n-grams": NGrams,
    "from the old text": Old,
}


@dataclass
class Sum:
    looks: int = 0
    prompt_s: float = 0.0
    s: float = 0.0
    equal: int = 0


@dataclass
class Filled:
    tokens: Tensor
    looks: int
    prompt_s: float
    s: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--holes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--context", type=int, default=900, help="characters around a hole")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    backend = registry.load(args.model, "cpu")
    assert isinstance(backend, CausalBackend), "this model does not read from left to right"
    vocabulary = Vocabulary(backend)
    encode = backend.tokens.encode
    cases = holes.cut(
        holes.installed(),
        args.holes,
        lambda text: len(encode(text)),
        seed=args.seed,
        most=MOST_TOKENS,
    )
    sums = {name: Sum() for name in WAYS}
    tokens = ended = exact = 0
    for number, case in enumerate(cases):
        found = {
            name: filled(case, way, backend, vocabulary, args.context) for name, way in WAYS.items()
        }
        plain = found["token by token"].tokens
        end = backend.fim.ends[0]
        length = int((plain != end).sum())
        text = backend.tokens.spell(plain[:length].tolist()).decode(errors="replace")
        tokens += min(length + 1, len(plain))
        ended += length < len(plain)
        exact += text.strip() == case.text.strip()
        row = {"hole": number, "text": text, "was": case.text}
        for name, one in found.items():
            total = sums[name]
            total.looks += one.looks
            total.prompt_s += one.prompt_s
            total.s += one.s
            total.equal += bool(torch.equal(one.tokens, plain))
            if not torch.equal(one.tokens, plain):
                row[f"{name}: apart by"] = apart(case, backend, plain, one.tokens, args.context)
        print(json.dumps(row), file=sys.stderr, flush=True)
    many = len(cases)
    print(
        f"{many} holes, {tokens} tokens with their ends; {ended} ended by themselves, {exact} exact"
    )
    print(f"{'':<20}{'equal':>10}{'looks/token':>14}{'s/hole':>10}{'prompt s':>10}{'of plain':>10}")
    plain_s = sums["token by token"].s
    for name, one in sums.items():
        print(
            f"{name:<20}{f'{one.equal}/{many}':>10}{one.looks / tokens:>14.3f}{one.s / many:>10.2f}"
            f"{one.prompt_s / many:>10.2f}{one.s / plain_s:>10.2f}"
        )


def canvas_of(case: Case, backend: CausalBackend, context: int) -> canvases.Canvas:
    before, after = case.before[-(context * 2 // 3) :], case.after[: context // 3]
    gap = wire.Gap(
        0, old=case.text, multiline=case.multiline, indent=case.indent, room=case.tokens + SPARE
    )
    parts = (wire.Text(before), gap, wire.Text(after))
    return canvases.build(parts, "", backend, at_start=False)


def filled(
    case: Case, way: type[Writing], backend: CausalBackend, vocabulary: Vocabulary, context: int
) -> Filled:
    """Return what a way makes of a hole, and what it cost from the second look on."""
    backend.memory = Memory()
    canvas = canvas_of(case, backend, context)
    draft = way(wire.Infill("bench", ()), canvas, backend, vocabulary)
    for _ in draft.begin(1.0):
        raise AssertionError("a text that is written from nothing asks nothing first")
    looks, prompt_s, s, steps, seen = 0, 0.0, 0.0, draft.denoise(), None
    try:
        while True:
            came = next(steps) if seen is None else steps.send(seen)
            seen = None
            if not isinstance(came, wire.Message):
                began = time.process_time()
                seen = backend.look(came)
                took = time.process_time() - began
                looks += 1
                if looks == 1:
                    prompt_s += took
                else:
                    s += took
    except StopIteration:
        return Filled(draft.last.tokens, looks, prompt_s, s)


def apart(case: Case, backend: CausalBackend, one: Tensor, other: Tensor, context: int) -> float:
    """Return how far apart the logits are of the first two tokens that differ."""
    slot = int((one != other).nonzero()[0])
    logits = backend.open(canvas_of(case, backend, context)).predict(one)[slot]
    return round(float(logits[one[slot]] - logits[other[slot]]), 6)


if __name__ == "__main__":
    main()

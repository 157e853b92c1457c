"""A denoise step on a GPU against its floor: the bytes it has to read and the products it has to make.

    python tests/bench/gpu.py                        # random weights of a 0.5 B and a 7 B shape, CUDA, bf16
    python tests/bench/gpu.py --shapes tiny --device cpu --window 256 --hole 16    # that it runs at all

Batch 1. A whole step computes all of the window, a cached one the hole's rows and their neighbours. The
floor is the larger of two times: weights (and kept keys and values) read once at the bandwidth that a
copy reaches here, and two operations a weight and row at the rate that one large product reaches here.
Not run on a GPU yet: none was at hand when it was written. Needs about 17 GB for the 7 B shape.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from frostline.evals.steps import window
from frostline.models.backend import Look, MaskedBackend
from frostline.models.spec import Length, ModelSpec, Noise
from frostline.models.tokens import Tokens

# Hidden size, layers, heads, heads of keys and values, size between, vocabulary.
SHAPES = {
    "tiny": (64, 2, 4, 2, 128, 512),
    "0.5b": (896, 24, 14, 2, 4864, 151936),
    "7b": (3584, 28, 28, 4, 18944, 152064),
}


@dataclass(frozen=True)
class Machine:
    """What this device reaches: bytes a second in a copy, operations a second in a large product."""

    bytes_s: float
    ops_s: float


def backend_of(shape: str, device: torch.device) -> MaskedBackend:
    torch.manual_seed(0)
    hidden, layers, heads, kept, between, vocabulary = SHAPES[shape]
    config = Qwen2Config(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kept,
        intermediate_size=between,
        vocab_size=vocabulary,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
    )
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    with torch.device(device):
        torch.set_default_dtype(dtype)
        model = Qwen2ForCausalLM(config).eval()
        torch.set_default_dtype(torch.float32)
    spec = ModelSpec(shape, Noise("mask", vocabulary - 1), 1, "full", Length("fixed"), 4096)
    # Nothing here is text, so there is no tokenizer.
    return MaskedBackend(cast(Any, None), spec, cast(Tokens, None), model)


def seconds(work: Callable[[], object], device: torch.device, rounds: int) -> float:
    wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    times = []
    for _ in range(rounds):
        wait()
        began = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - began)
    return min(times)


def measured(device: torch.device) -> Machine:
    large = device.type == "cuda"
    side = 8192 if large else 1024
    dtype = torch.bfloat16 if large else torch.float32
    a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    copied = torch.empty_like(a)
    copy_s = seconds(lambda: copied.copy_(a), device, 20)
    product_s = seconds(lambda: a @ b, device, 10)
    return Machine(2 * a.numel() * a.element_size() / copy_s, 2 * side**3 / product_s)


def floor_s(backend: MaskedBackend, rows: int, length: int, read: int, machine: Machine) -> float:
    """Return the least seconds of a pass with `rows` rows in a window of `length`, `read` logits."""
    config = backend.model.config
    size = next(backend.model.parameters()).element_size()
    body = sum(one.numel() for one in backend.model.model.layers.parameters())
    head = config.vocab_size * config.hidden_size
    kept = 2 * config.num_hidden_layers * length * config.hidden_size
    kept = kept * config.num_key_value_heads // config.num_attention_heads
    attention = 4 * rows * length * config.hidden_size * config.num_hidden_layers
    read_s = (body + head + kept) * size / machine.bytes_s
    return max(read_s, (2 * (body * rows + head * read) + attention) / machine.ops_s)


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["0.5b", "7b"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--window", type=int, default=2048)
    parser.add_argument("--hole", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    device = torch.device(args.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            "there is no CUDA device here; --device cpu --shapes tiny shows that it runs"
        )
    machine = measured(device)
    results: list[dict[str, Any]] = []
    for shape in args.shapes:
        backend = backend_of(shape, device)
        run = backend.open(window(backend, args.window, args.hole))
        tokens = backend.noise(args.hole)
        backend.look([Look(run, tokens)])
        backend.refresh_every = 1 << 30
        for name, whole in (("whole", True), ("cached", False)):
            look = Look(run, tokens, whole=whole)
            rows = args.window if whole else backend.rows(look)
            took = seconds(partial(backend.look, [look]), device, args.rounds)
            least = floor_s(backend, rows, args.window, args.hole, machine)
            results.append(
                {
                    "shape": shape,
                    "step": name,
                    "rows": rows,
                    "ms": round(took * 1000, 3),
                    "floor_ms": round(least * 1000, 3),
                    "ratio": round(took / least, 2),
                }
            )
            print(results[-1], flush=True)
        del backend, run
        if device.type == "cuda":
            torch.cuda.empty_cache()
    print(
        json.dumps(
            {"gb_s": machine.bytes_s / 1e9, "tera_ops_s": machine.ops_s / 1e12, "results": results}
        )
    )


if __name__ == "__main__":
    main()

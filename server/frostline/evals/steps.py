"""What a single look costs: all of a window, its slots alone, and several windows in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from frostline.evals.clock import Clock
from frostline.models.backend import Look, MaskedBackend


@dataclass(frozen=True, slots=True)
class Window:
    """A canvas of tokens that mean nothing, for measuring."""

    ids: Tensor
    slots: Tensor


@dataclass(frozen=True, slots=True)
class StepTime:
    """Milliseconds of a look by window and hole, the least of several; `speedup` is their ratio."""

    window: int
    hole: int
    whole_ms: float
    cached_ms: float

    @property
    def speedup(self) -> float:
        return self.whole_ms / self.cached_ms


@dataclass(frozen=True, slots=True)
class BatchTime:
    """Milliseconds of a cached look at each of `together` windows, one by one and in one pass."""

    together: int
    alone_ms: float
    packed_ms: float


def window(backend: MaskedBackend, length: int, hole: int, seed: int = 0) -> Window:
    """Return a window of `length` random tokens, `hole` of which are slots, in its middle."""
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, backend.vocabulary, (length,), generator=draw)
    start = (length - hole) // 2
    return Window(ids, torch.arange(start, start + hole))


def step_time(
    backend: MaskedBackend, length: int, hole: int, clock: Clock, rounds: int
) -> StepTime:
    """Measure a look at a whole window and one at its slots, in turns."""
    run = backend.open(window(backend, length, hole))
    tokens = backend.noise(hole)
    backend.look([Look(run, tokens)])
    whole, cached = [], []
    for _ in range(rounds):
        whole.append(_timed(clock, lambda: backend.look([Look(run, tokens, whole=True)])))
        cached += [_timed(clock, lambda: backend.look([Look(run, tokens)])) for _ in range(5)]
    return StepTime(length, hole, min(whole) * 1000, min(cached) * 1000)


def batch_time(
    backend: MaskedBackend, together: int, length: int, hole: int, clock: Clock, rounds: int
) -> BatchTime:
    """Measure cached looks at several windows, one by one and packed, in turns."""
    runs = [backend.open(window(backend, length, hole, seed)) for seed in range(together)]
    looks = [Look(run, backend.noise(hole)) for run in runs]
    for look in looks:
        backend.look([look])
    alone, packed = [], []
    for _ in range(rounds):
        alone.append(_timed(clock, lambda: [backend.look([look]) for look in looks]))
        packed.append(_timed(clock, lambda: backend.look(looks)))
    return BatchTime(together, min(alone) * 1000, min(packed) * 1000)


def _timed(clock: Clock, work: Callable[[], Sequence[object]]) -> float:
    began = clock()
    work()
    return clock() - began

"""The batches of each step, made in the step itself or by helpers that are some steps ahead.

A processor learns slower than it cuts holes; a GPU would wait for them most of the time.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, Dataset

from frostline.train.objective import Batch, Kind, Questions
from frostline.train.plan import Plan

# Steps that a helper is ahead.
EACH_AHEAD = 2


class Steps(Dataset[list[Batch]]):
    """What each step asks, by its number: drawn from that alone, whoever draws it.

    Attributes:
        progress: share of the budget that is used, which the run keeps true for its helpers.
    """

    def __init__(self, questions: Questions, plan: Plan) -> None:
        self._questions = questions
        self._plan = plan
        self.progress: Any = multiprocessing.get_context("spawn").Value("d", 0.0)

    def __getitem__(self, step: int) -> list[Batch]:
        plan = self._plan
        # A run that was stopped asks what it would have asked.
        rng = np.random.default_rng((plan.seed, step))
        sizes, shares = zip(*plan.windows, strict=True)
        window = int(rng.choice(sizes, p=shares))
        rows = max(plan.tokens // window, 1)
        # In a run of so many steps helpers must not depend on how far ahead they are.
        progress = step / plan.steps if plan.steps else self.progress.value
        return [
            self._questions.batch(kind, rows, window, rng) for kind in kinds(plan, progress, rng)
        ]


def kinds(plan: Plan, progress: float, rng: np.random.Generator) -> list[Kind]:
    """Return the kinds of a step's micro-batches, in the plan's shares on average."""
    share = plan.left[0] if progress < 0.5 else plan.left[1]
    wanted = share * plan.micro
    left = int(wanted) + int(rng.random() < wanted % 1)
    others: list[Kind] = [
        "scattered" if rng.random() < plan.scattered else "holes" for _ in range(plan.micro - left)
    ]
    last: list[Kind] = ["left"] * left
    return others + last


def from_step(steps: Steps, first: int, helpers: int) -> Iterator[list[Batch]]:
    """Yield the batches of each step from `first` on, in order, without end."""
    if not helpers:
        while True:
            yield steps[first]
            first += 1
    yield from DataLoader(
        steps,
        sampler=range(first, 2**31),
        batch_size=None,
        num_workers=helpers,
        prefetch_factor=EACH_AHEAD,
        multiprocessing_context="spawn",
        worker_init_fn=_deaf,
    )


def _deaf(_: int) -> None:
    # Ctrl-C asks the run to save and end; its helpers end with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

"""The run: questions in, weights out; it can be stopped at any step and goes on from there."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frostline.train import folder as folders
from frostline.train import passes
from frostline.train.batches import Steps, from_step
from frostline.train.folder import Position
from frostline.train.objective import Batch, Questions
from frostline.train.optimiser import Optimiser, rate
from frostline.train.plan import Plan


@dataclass(frozen=True, slots=True)
class Report:
    """What is told while it trains. Losses (nats) are running means, by kind of question."""

    position: Position
    progress: float
    rate: float
    losses: dict[str, float]
    tokens_per_second: float
    seconds_left: float


Tell = Callable[[Report], None]


class Run:
    """A model in training and where it stands."""

    def __init__(self, model: Any, questions: Questions, plan: Plan, device: torch.device) -> None:
        self.model = model.to(device).train()
        self.position = Position(seed=plan.seed)
        self._steps = Steps(questions, plan)
        self._asked = from_step(self._steps, 0, plan.helpers)
        self._plan = plan
        self._device = device
        if device.type == "cuda":
            torch.set_float32_matmul_precision("high")
        if plan.compiled:
            # A graph for each window size and kind of attention, each of which takes a minute.
            self.model.model.compile(dynamic=False)
        exact = not plan.half
        self._optimiser = Optimiser(model.named_parameters(), plan.rates, exact)
        self._typical = 0.0
        self.losses: dict[str, float] = {}

    @property
    def progress(self) -> float:
        """The share of the budget that is used."""
        if self._plan.steps:
            return min(self.position.step / self._plan.steps, 1.0)
        return min(self.position.elapsed / (self._plan.hours * 3600), 1.0)

    @property
    def decaying(self) -> bool:
        """Whether the rate is past its stable phase."""
        return self.progress > 1.0 - self._plan.rates.decay

    def state(self) -> dict[str, Tensor]:
        """Return all tensors that a later run needs."""
        return passes.tensors_of(self.model) | {
            f"optimiser.{name}": one.cpu() for name, one in self._optimiser.state.items()
        }

    def restore(self, tensors: dict[str, Tensor], position: Position) -> None:
        """Stand where `state` was taken."""
        own = {n: t for n, t in tensors.items() if not n.startswith("optimiser.")}
        passes.take(self.model, own)
        for name, one in self._optimiser.state.items():
            one.copy_(tensors[f"optimiser.{name}"])
        self.position = position
        self._asked = from_step(self._steps, position.step, self._plan.helpers)

    def step(self) -> Report:
        """Take one step and say how it went."""
        started = time.monotonic()
        factor = rate(self.position.step, self.progress, self._plan.rates)
        self._steps.progress.value = self.progress
        asked = next(self._asked)
        for batch in asked:
            self._learn(batch)
        self._optimiser.step(factor, self.position.step + 1)
        seen = sum(batch.ids.numel() for batch in asked)
        taken = time.monotonic() - started
        counted = spent(taken, self._typical)
        self.position = replace(
            self.position,
            step=self.position.step + 1,
            tokens=self.position.tokens + seen,
            elapsed=self.position.elapsed + counted,
        )
        self._typical += (0.1 if self._typical else 1.0) * (counted - self._typical)
        return self._report(factor, seen / taken)

    def _learn(self, batch: Batch) -> None:
        moved = replace(
            batch,
            ids=batch.ids.to(self._device),
            read_at=batch.read_at.to(self._device),
            answers=batch.answers.to(self._device),
            weights=batch.weights.to(self._device),
        )
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._plan.half):
            surprise = passes.loss(self.model, moved)
        (surprise / self._plan.micro).backward()
        now = float(surprise.detach())
        if not np.isfinite(now):
            raise FloatingPointError(f"the loss is {now} at step {self.position.step}")
        self.losses[batch.kind] = now + 0.98 * (self.losses.get(batch.kind, now) - now)

    def _report(self, factor: float, speed: float) -> Report:
        done = self.progress
        left = self.position.elapsed / done * (1 - done) if done else 0.0
        return Report(self.position, done, factor, dict(self.losses), speed, left)


def spent(taken: float, typical: float) -> float:
    """Return the seconds of budget that a step used up, which took so many.

    A machine that was put to sleep in a step learnt nothing meanwhile, and a rate that has gone down
    over it would not come back: no step counts for more than eight of the usual ones.
    """
    return min(taken, 8 * typical) if typical else taken


def train(run: Run, plan: Plan, out: Path, tell: Tell) -> bool:
    """Train until the budget is used or somebody stops it; return True when it is used.

    The folder `out` has usable weights after each checkpoint, and `stable` in it keeps the state
    from before the rate went down: a longer run goes on from there.
    """
    saved = time.monotonic()
    with stopping() as stop:
        while run.progress < 1.0 and not stop.is_set():
            was_stable = not run.decaying
            tell(run.step())
            if was_stable and run.decaying:
                folders.save(out / "stable", run.state(), run.position)
            if time.monotonic() - saved > plan.every:
                keep(run, out)
                saved = time.monotonic()
    keep(run, out)
    return run.progress >= 1.0


def keep(run: Run, out: Path) -> None:
    """Write a checkpoint, and the weights as the product loads them."""
    folders.save(out / "checkpoint", run.state(), run.position)
    folders.write_weights(out, passes.tensors_of(run.model))


@contextlib.contextmanager
def stopping() -> Iterator[threading.Event]:
    """Give an event that is set when the process is asked to end, instead of ending it."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    for one in before:
        signal.signal(one, lambda *_: stop.set())
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)

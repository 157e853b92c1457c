"""A request on its way: what it wants the model to look at, and what it has to say.

A request is worked on by a generator. It yields looks and is sent what the model saw, so several can
be looked at in one pass; in between it yields messages for whoever asked.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence

from torch import Tensor

from frostline.decoding.loop import Asking, NothingFits
from frostline.errors import WorkerRefused
from frostline.models.backend import Look, Run
from frostline.wire import messages as wire

Steps = Generator[Sequence[Look] | wire.Message, list[Tensor], None]
# What a work came to in one step: a message, nothing yet, or why it failed.
Came = wire.Message | Exception | None


class Spent:
    """What a work took: a pass that several works share counts for each by its share."""

    def __init__(self) -> None:
        self.wall_s = self.cpu_s = 0.0
        self.passes = self.shared = 0

    def add(self, wall_s: float, cpu_s: float, among: int = 1) -> None:
        """Count a stretch of work that was done for `among` works at once."""
        self.wall_s += wall_s / among
        self.cpu_s += cpu_s / among


class Work:
    """One request on its way.

    Attributes:
        steps: what it does, look by look.
        wants: what it waits to have looked at; empty before it has begun, and between messages.
        turn: the pass of the model in which it was looked at last, 0 before its first.
    """

    def __init__(self, steps: Steps, spent: Spent) -> None:
        self.steps = steps
        self.spent = spent
        self.wants: Sequence[Look] = ()
        self.turn = 0

    def go_on(self, seen: list[Tensor] | None) -> Came:
        """Go on with what was seen, up to the next message or look."""
        self.wants = ()
        began = now()
        try:
            came = next(self.steps) if seen is None else self.steps.send(seen)
        except StopIteration:
            return RuntimeError("a work went on behind its end")
        except Exception as error:
            return _told(error)
        finally:
            self.spent.add(*since(began))
        if isinstance(came, wire.Message):
            return came
        self.wants = came
        return None


def looked_at(asking: Asking, run: Run) -> Generator[Sequence[Look], list[Tensor], Tensor]:
    """Have what `asking` wants to see looked at over `run`, and return what it comes to."""
    try:
        tokens = next(asking)
        while True:
            (seen,) = yield [Look(run, tokens)]
            tokens = asking.send(seen)
    except StopIteration as end:
        result: Tensor = end.value
        return result


def since(began: tuple[float, float]) -> tuple[float, float]:
    """Return the seconds that passed, and those that the processor worked, since `now()` was `began`."""
    return time.perf_counter() - began[0], time.process_time() - began[1]


def now() -> tuple[float, float]:
    """Return the clocks that `since` compares with."""
    return time.perf_counter(), time.process_time()


def _told(error: Exception) -> Exception:
    if isinstance(error, NothingFits):
        return WorkerRefused(
            "nothing-fits",
            "nothing that the model can write fits here; select whole words or lines and ask again",
        )
    return error

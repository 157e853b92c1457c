"""Many requests at once on one worker against the same requests one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frostline.evals.clock import Clock
from frostline.evals.holes import PER_TOKEN, Case
from frostline.models.backend import Backend
from frostline.wire import messages as wire
from frostline.worker.engine import Engine


@dataclass(frozen=True, slots=True)
class Together:
    """Seconds for `sessions` requests, one after the other and all at once.

    Attributes:
        waited: most passes of the model that a request which came last had to wait for its first.
    """

    sessions: int
    alone_s: float
    together_s: float
    waited: int

    @property
    def share(self) -> float:
        """How much of the time of single runs they take at once."""
        return self.together_s / self.alone_s


def together(backend: Backend, cases: Sequence[Case], clock: Clock) -> Together:
    """Fill `cases` one by one and all at once, as a worker does; then let one more come."""
    context = backend.spec.max_context * PER_TOKEN
    requests = [
        wire.Infill(f"bench{number}", case.segments(context)) for number, case in enumerate(cases)
    ]
    engine = Engine(backend)
    began = clock()
    for request in requests:
        list(engine.alone(request))
    alone_s = clock() - began
    engine = Engine(backend)
    began = clock()
    works = [engine.begin(request) for request in requests]
    while works:
        # Those that have waited longest go first, as in the worker.
        works.sort(key=lambda work: work.turn)
        came = engine.advance(works)
        over = [
            isinstance(one, Exception) or (one is not None and not isinstance(one, wire.Step))
            for one in came
        ]
        works = [work for work, ended in zip(works, over, strict=True) if not ended]
    return Together(len(cases), alone_s, clock() - began, _waited(backend, requests))


def _waited(backend: Backend, requests: Sequence[wire.Infill]) -> int:
    """Return how many passes a new request waits for, beside all the others, until its own first."""
    engine = Engine(backend)
    works = [engine.begin(request) for request in requests]
    for _ in range(4):
        works.sort(key=lambda work: work.turn)
        engine.advance(works)
    new = engine.begin(requests[0])
    passes = 0
    while new.turn == 0:
        engine.advance([new, *works])
        passes += bool(new.wants) or new.turn > 0
    return passes

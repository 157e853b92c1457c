"""One model, and what is asked of it: requests in, messages out, all of them a step at a time.

What is asked becomes a `Work`: it says what it wants the model to look at, is given what the model
sees, and now and then has a message for whoever asked. `Engine.advance` takes several works one look
further in one pass of the model. Nothing here knows sockets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from frostline.models.backend import Backend
from frostline.models.causal import CausalBackend
from frostline.wire import messages as wire
from frostline.worker import canvas as canvases
from frostline.worker.causal import Writing
from frostline.worker.drafting import Draft, drafting
from frostline.worker.renoising import Renoised
from frostline.worker.vocabulary import Vocabulary
from frostline.worker.work import Came, Spent, Steps, Work, looked_at, now, since

# Tokens in one pass, a single work's apart. A pass is what a cancel has to wait for, and beyond this
# many rows matrix products gain nothing more from being done together.
MOST_ROWS = 1024


def kind_of(backend: Backend) -> type[Draft]:
    """Return how a backend's text comes about."""
    if isinstance(backend, CausalBackend):
        return Writing
    return Renoised if backend.spec.noise.kind == "uniform" else Draft


class Engine:
    """Runs requests on one backend."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._vocabulary = Vocabulary(backend)
        self._kind = kind_of(backend)
        self._passes = 0

    def begin(self, request: wire.Infill | wire.Score) -> Work:
        """Return the work that answers a request: Steps and Done, or Scored."""
        spent = Spent()
        if isinstance(request, wire.Infill):
            steps = drafting(request, self.backend, self._vocabulary, spent, self._kind)
            return Work(steps, spent)
        return Work(self._scoring(request), spent)

    def advance(self, works: Sequence[Work]) -> list[Came]:
        """Take `works` a step further: to the next message, or one look on, in one pass of the model.

        The earlier ones go first: what would make the pass too long for somebody who waits for a
        cancel stays as it is, and has its turn later.
        """
        came: list[Came] = [None] * len(works)
        for place, work in enumerate(works):
            if not work.wants:
                came[place] = work.go_on(None)
        taken = self._fitting([place for place, work in enumerate(works) if work.wants], works)
        if taken:
            seen = self._look([works[place] for place in taken])
            for place, views in zip(taken, seen, strict=True):
                came[place] = works[place].go_on(views)
        return came

    def _fitting(self, places: Sequence[int], works: Sequence[Work]) -> list[int]:
        """Return the first of `places`, and those behind it that still fit the pass."""
        taken, rows = list[int](), 0
        for place in places:
            needed = sum(self.backend.rows(look) for look in works[place].wants)
            if not taken or rows + needed <= MOST_ROWS:
                taken.append(place)
                rows += needed
        return taken

    def _look(self, works: Sequence[Work]) -> list[list[Tensor]]:
        """Return what each of the works wants to see."""
        looks = [look for work in works for look in work.wants]
        began = now()
        seen = iter(self.backend.look(looks))
        wall_s, cpu_s = since(began)
        self._passes += 1
        for work in works:
            share = len(work.wants)
            work.spent.add(wall_s * share, cpu_s * share, len(looks))
            work.spent.passes += 1
            work.spent.shared += len(works)
            work.turn = self._passes
        return [[next(seen) for _ in work.wants] for work in works]

    def alone(self, request: wire.Infill | wire.Score) -> Iterator[wire.Message]:
        """Yield all messages of a request that has the model to itself.

        Raises:
            WorkerRefused: the request does not fit the model.
        """
        work = self.begin(request)
        while True:
            (came,) = self.advance([work])
            if isinstance(came, Exception):
                raise came
            if came is not None:
                yield came
                if not isinstance(came, wire.Step):
                    return

    def _scoring(self, request: wire.Score) -> Steps:
        """Say how likely the model finds each gap's old text: mean nats a token, never above 0."""
        canvas = canvases.build(
            request.segments, request.preamble, self.backend, at_start=request.at_start, spare=False
        )
        tokens = [one for gap in canvas.gaps for one in gap.old]
        old = torch.tensor(tokens, device=self.backend.device)
        run = self.backend.open(canvas)
        asking = self._kind.likelihood(old, self.backend.noise(len(old)))
        log_p = yield from looked_at(asking, run)
        means = [float(log_p[gap.slots].mean()) if gap.count else 0.0 for gap in canvas.gaps]
        yield wire.Scored(request.id, tuple(means), tuple(gap.count for gap in canvas.gaps))

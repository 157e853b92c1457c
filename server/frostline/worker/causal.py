"""A request to the autoregressive peer: one stretch of slots after another, each refined until it is settled.

Where a masked model denoises all gaps jointly, this one fills them in reading order: each sees what
the ones before it became, and nothing of those behind. The old text of a gap, or n-grams of what is
around it, is where the refinement starts; what comes out is the same from any start.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from frostline.decoding.continuing import Continuing
from frostline.decoding.jacobi import ON_PROCESSOR, Guess, NGrams, Refining, Widths, nothing
from frostline.decoding.loop import Asking, Step
from frostline.models.backend import Look
from frostline.models.causal import CausalBackend, CausalRun
from frostline.wire import messages as wire
from frostline.worker.canvas import Canvas, GapSlots
from frostline.worker.drafting import Draft
from frostline.worker.stability import Stability
from frostline.worker.vocabulary import Vocabulary
from frostline.worker.work import Steps

# What a gap is refined from: its old text and n-grams, n-grams of what is around it, or nothing.
Start = Literal["old", "ngrams", "nothing"]


def likelihood(tokens: Tensor, noise: Tensor) -> Asking:
    """Ask for logits, and return (slots,) log-probabilities (nats) of tokens, given all left of each."""
    logits = yield tokens
    return torch.log_softmax(logits.float(), -1).gather(-1, tokens[:, None]).squeeze(-1)


class Writing(Draft):
    """One request's canvas, written from left to right.

    Attributes:
        start: what a gap is refined from.
        widths: how many slots are looked at at once, None for what the device has room for.
    """

    backend: CausalBackend
    run: CausalRun
    likelihood = staticmethod(likelihood)
    start: Start = "old"
    widths: Widths | None = None

    def __init__(
        self, infill: wire.Infill, canvas: Canvas, backend: CausalBackend, vocabulary: Vocabulary
    ) -> None:
        super().__init__(infill, canvas, backend, vocabulary)
        self.stability = Stability(canvas.gap, backend.spec.pad, final=True)

    @property
    def last(self) -> Step:
        return self._last

    def begin(self, strength: float) -> Generator[Sequence[Look], list[Tensor], None]:
        noise = self.backend.noise(len(self.canvas.slots))
        tokens, open = yield from self._noised(noise, strength)
        sure = torch.where(open, 0.0, 1.0)
        self._last = Step(0, len(tokens), tokens, open, sure, torch.zeros_like(sure))

    def denoise(self) -> Steps:
        while self.last.open.any():
            yield from self._write(*self._next())

    def _next(self) -> tuple[GapSlots, slice]:
        """Return the first stretch of open slots in a row, and its gap."""
        open = self.last.open.cpu()
        start = int(open.nonzero()[0])
        gap = self.canvas.gaps[int(self.canvas.gap[start])]
        settled = (~open[start : gap.slots.stop]).nonzero()
        return gap, slice(start, start + int(settled[0]) if len(settled) else gap.slots.stop)

    def _write(self, gap: GapSlots, slots: slice) -> Steps:
        """Refine a stretch until it is settled, and say so after each look."""
        before, behind = self.run.around(slots, self.last.tokens, ~self.last.open)
        filling = self.run.filling(before, behind, slots.stop - slots.start)
        refining = self._refining(gap, slots, self._guess(gap, slots, before, behind))
        while not refining.done:
            filling.settled, filling.count = refining.settled, refining.count
            (logits,) = yield [Look(filling, refining.tokens)]
            self._take(slots, refining.answer(logits))
            spent = self.last.step == self.infill.decoding.steps
            if spent:
                self._cut()
            yield wire.Step(
                self.infill.id, self.last.step, self.last.steps, self._drafts(self.last)
            )
            if spent:
                return

    def _refining(self, gap: GapSlots, slots: slice, guess: Guess) -> Refining:
        start = self.backend.noise(slots.stop - slots.start)
        old = self._old(gap, slots)[: len(start)]
        start[: len(old)] = torch.tensor(old, dtype=torch.long, device=start.device)
        fitting = ON_PROCESSOR if self.backend.device.type == "cpu" else Widths()
        decoding = self.infill.decoding
        return Refining(
            start,
            self._possible(gap, slots),
            self.backend.fim.ends[0],
            guess,
            widths=self.widths or fitting,
            temperature=decoding.temperature,
            seed=decoding.seed * 8191 + slots.start,
        )

    def _old(self, gap: GapSlots, slots: slice) -> Sequence[int]:
        """Return the old text of a stretch, where it is to be started from."""
        return gap.old[slots.start - gap.start :] if self.start == "old" else ()

    def _guess(self, gap: GapSlots, slots: slice, before: list[int], behind: list[int]) -> Guess:
        """Return guesses by the old text of a stretch, then by the text around it."""
        if self.start == "nothing":
            return nothing
        return NGrams([before, behind], before, self._old(gap, slots))

    def _possible(self, gap: GapSlots, slots: slice) -> Continuing:
        """Return what the slots of a stretch may become."""
        written = self.last.tokens[gap.start : slots.start].tolist()
        spelled = b"".join(self.vocabulary.spelling[one] for one in written)
        number = self.canvas.gaps.index(gap)
        never, over = self.rules.banned.clone(), self.vocabulary.over(gap.multiline, gap.without)
        never[list(self.backend.fim.ends)] = True
        if not gap.multiline:
            never |= self.rules.line_ends
        if (outside := self.rules.outside[number]) is not None:
            never |= outside
        over[list(self.backend.fim.ends)] = True
        required = gap.required
        return Continuing(
            never=never,
            ends=over.nonzero().flatten(),
            end=self.backend.fim.ends[0],
            spelling=self.vocabulary.spelling,
            slots=slots.stop - slots.start,
            required=required[len(spelled) :] if required.startswith(spelled) else b"",
            before=written[-1] if written else None,
            shallow=self.rules.shallow[number],
            begins_line=self.rules.begins_line,
        )

    def _take(self, slots: slice, step: Step) -> None:
        """Put the slots of a stretch into the canvas as they are now."""
        last = self.last
        tokens, open, confidence = last.tokens.clone(), last.open.clone(), last.confidence.clone()
        tokens[slots], open[slots], confidence[slots] = step.tokens, step.open, step.confidence
        drift = torch.where(open, float("inf"), 0.0)
        self._last = Step(last.step + 1, last.steps, tokens, open, confidence, drift)

    def _cut(self) -> None:
        """Have nothing stand in the slots that are open: the budget is spent."""
        last = self.last
        tokens = last.tokens.masked_fill(last.open, self.backend.fim.ends[0])
        self._last = replace(last, tokens=tokens, open=torch.zeros_like(last.open))

    def doubted(self) -> Generator[Sequence[Look], list[Tensor], Tensor]:
        """Return that nothing is: what is kept of a text written in order is what it would be anew."""
        yield from ()
        return torch.zeros_like(self.last.open)

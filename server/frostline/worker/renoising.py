"""From an Infill to its text with a model of uniform noise: what is kept, what is shown, what is doubted."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from math import floor

import msgspec
import torch
from torch import Tensor

from frostline.decoding.loop import Step
from frostline.decoding.renoise import Renoising
from frostline.models.backend import Backend, Look
from frostline.models.spec import Sampler
from frostline.wire import messages as wire
from frostline.worker.asked import put_before
from frostline.worker.canvas import Canvas
from frostline.worker.drafting import Draft
from frostline.worker.stability import DRAFT, OPEN, STILL, SURE
from frostline.worker.vocabulary import Vocabulary
from frostline.worker.work import Spent, Steps


class Renoised(Draft):
    """One request's canvas on its way to text. Nothing settles, so what is stable has to be still."""

    renoising: Renoising

    def __init__(
        self, infill: wire.Infill, canvas: Canvas, backend: Backend, vocabulary: Vocabulary
    ) -> None:
        if infill.instruction:
            canvas = put_before(canvas, infill.instruction, backend.spec, backend.tokens)
        super().__init__(infill, canvas, backend, vocabulary)

    def begin(self, strength: float) -> Generator[Sequence[Look], list[Tensor], None]:
        """Have the canvas noised: all of it, or the least likely share of the old text."""
        noise = self.backend.noise(len(self.canvas.slots))
        tokens, noisy = yield from self._noised(noise, strength)
        tokens, open = self._with_beginnings(tokens)
        sampler = self._sampler()
        self.renoising = Renoising(
            tokens,
            open,
            noisy,
            self.rules,
            sampler,
            self.backend.vocabulary,
            torch.Generator(self.backend.device).manual_seed(self.infill.decoding.seed),
            # What is noised in part begins where a whole canvas would be as far: later, and cooler.
            first=floor((1 - strength) * sampler.steps),
        )

    def denoise(self) -> Steps:
        """Denoise until the text is stable and sure, or the steps are spent, and say so after each."""
        renoising = self.renoising
        while not renoising.done:
            look = Look(self.run, renoising.question(), believed=renoising.believed)
            (logits,) = yield [look]
            step = renoising.answer(logits)
            yield wire.Step(self.infill.id, step.step, step.steps, self._drafts(step))

    def doubted(self) -> Generator[Sequence[Look], list[Tensor], Tensor]:
        """Look at the text as it is, with nothing kept and nothing told.

        Returns:
            (slots,) booleans: where the model would write something else now. A model of uniform noise
            has an opinion of each token that it sees.
        """
        last = self.last
        open = self.renoising.open
        (logits,) = yield [Look(self.run, last.tokens, whole=True)]
        again = self.rules.possible(logits.float(), last.tokens, open).argmax(-1)
        return open & (again != last.tokens)

    def done(self, spent: Spent, *, verified: bool) -> wire.Done:
        """Return the end of the run: converged, or its steps spent."""
        said = super().done(spent, verified=verified)
        outcome: wire.Outcome = "converged" if self.renoising.converged else "budget"
        return msgspec.structs.replace(said, outcome=outcome)

    @property
    def last(self) -> Step:
        """The canvas after the last step."""
        return self.renoising.now

    def _sampler(self) -> Sampler:
        """Return the checkpoint's settings, with what the request asks for."""
        decoding, sampler = self.infill.decoding, self.backend.spec.sampler or Sampler()
        return msgspec.structs.replace(
            sampler,
            steps=decoding.steps or sampler.steps,
            entropy_bound=decoding.entropy_bound or sampler.entropy_bound,
        )

    def _with_beginnings(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return (slots,) tokens with what each gap has to begin with, and which are left to fill."""
        tokens, open = tokens.clone(), torch.ones_like(tokens, dtype=torch.bool)
        for gap in self.canvas.gaps:
            begins = self.backend.tokens.encode(gap.required.decode())[: gap.count]
            here = slice(gap.start, gap.start + len(begins))
            tokens[here] = torch.tensor(begins, dtype=tokens.dtype, device=tokens.device)
            open[here] = False
        return tokens, open

    def _drafts(self, step: Step) -> tuple[wire.GapDraft, ...]:
        # Accepted is not settled: a slot counts as decided where it is sure and has stopped moving.
        still = (step.confidence >= SURE) & (step.drift <= STILL)
        over = not bool(step.open.any()) and self.renoising.done
        states = self.stability.saw(step if over else replace(step, open=~still))
        states = torch.where((states == OPEN) & ~step.open.cpu(), DRAFT, states)
        return tuple(
            wire.GapDraft(gap.id, self._spelled(gap, step, states).pieces)
            for gap in self.canvas.gaps
        )

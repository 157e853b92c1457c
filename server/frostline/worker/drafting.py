"""From an Infill to its text: noise, denoise, look once more, and say so after every step."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import accumulate

import torch
from torch import Tensor

from frostline.decoding import choose, loop, schedule
from frostline.decoding.length import Resized
from frostline.decoding.loop import Denoising, Step
from frostline.errors import WorkerRefused
from frostline.models.backend import Backend, Look, Run
from frostline.wire import messages as wire
from frostline.worker import canvas as canvases
from frostline.worker.canvas import Canvas, GapSlots
from frostline.worker.lengths import Lengths
from frostline.worker.stability import STABLE, Stability
from frostline.worker.vocabulary import Vocabulary
from frostline.worker.work import Spent, Steps, looked_at

# How much of a finished draft is masked again for the last look (the share that MaskGIT-style
# checks re-mask; see DESIGN section 5, "before commit").
RECHECKED = 0.15


def drafting(
    infill: wire.Infill, backend: Backend, vocabulary: Vocabulary, spent: Spent, kind: type[Draft]
) -> Steps:
    """Yield what is to be looked at, a Step after each step, and Done at the end.

    Args:
        kind: how this backend's text comes about.

    Raises:
        WorkerRefused: the request does not fit the model.
        NothingFits: a slot has no token that may stand in it.
    """
    if infill.instruction and not backend.spec.instruction:
        raise WorkerRefused(
            "no-instruction",
            f"{backend.spec.name} does not follow instructions; leave it out, or choose another model",
        )
    strength = min(max(infill.strength, 0.0), 1.0)
    if strength == 0:
        yield _as_it_was(infill)
        return
    canvas = canvases.build(
        infill.segments, infill.preamble, backend, at_start=infill.at_start, strength=strength
    )
    draft = kind(infill, canvas, backend, vocabulary)
    yield from draft.begin(strength)
    yield from draft.denoise()
    doubted = yield from draft.doubted()
    yield draft.done(spent, verified=not bool(doubted.any()))


class Draft:
    """One request's canvas on its way to text."""

    denoising: Denoising
    # How likely the model finds a text: the old text's least likely tokens are noised first.
    likelihood = staticmethod(loop.likelihood)

    def __init__(
        self, infill: wire.Infill, canvas: Canvas, backend: Backend, vocabulary: Vocabulary
    ) -> None:
        self.infill = infill
        self.canvas = canvas
        self.backend = backend
        self.vocabulary = vocabulary
        self.run: Run = backend.open(canvas)
        self.lengths = Lengths(backend.spec, canvas)
        self.stability = Stability(canvas.gap, backend.spec.pad)
        self._forwards = 0
        self._constrain()

    def begin(self, strength: float) -> Generator[Sequence[Look], list[Tensor], None]:
        """Have the canvas noised."""
        noise = self.backend.noise(len(self.canvas.slots))
        tokens, open = yield from self._noised(noise, strength)
        decoding = self.infill.decoding
        self.denoising = Denoising(
            tokens,
            open,
            noise,
            self.rules,
            choice(decoding),
            schedule.SCHEDULES[decoding.schedule],
            decoding.steps or int(open.sum()),
            temperature=decoding.temperature,
            generator=torch.Generator().manual_seed(decoding.seed),
        )

    def denoise(self) -> Steps:
        """Denoise until no slot is open, and say so after each step."""
        while not self.denoising.done:
            if self.denoising.now.step + 1 == self.infill.decoding.steps:
                self._constrain(last=True)
                self.denoising.rules = self.rules
            (logits,) = yield [Look(self.run, self.denoising.question())]
            step = self.denoising.answer(logits)
            to = self.lengths.resized(step, self.canvas)
            if to is not None:
                step = self._resize(to)
            yield wire.Step(self.infill.id, step.step, step.steps, self._drafts(step))

    def _constrain(self, *, last: bool = False) -> None:
        forbidden = self.lengths.forbidden(self.canvas, last=last)
        rules = self.vocabulary.rules(self.canvas, forbidden)
        self.rules = replace(rules, turns=self.run.turns)

    def _resize(self, to: Resized) -> Step:
        """Go on with another number of slots. All stands elsewhere then, so all is looked at anew."""
        self.canvas = canvases.resized(self.canvas, to)
        self._forwards += self.run.forwards
        self.run = self.backend.open(self.canvas)
        self._constrain()
        left = int((self.denoising.now.open[to.source] | to.fresh).sum())
        if self.infill.decoding.steps is not None:
            left = min(left, max(self.infill.decoding.steps - self.denoising.now.step, 1))
        noise = self.backend.noise(len(self.canvas.slots))
        self.denoising.resize(to, noise, self.rules, left)
        self.stability.resize(to, self.canvas.gap)
        return self.denoising.now

    def doubted(self) -> Generator[Sequence[Look], list[Tensor], Tensor]:
        """Ask again about the least sure slots, with the whole window looked at anew.

        Returns:
            (slots,) booleans: where the model would write something else now.
        """
        last = self.last
        text = self._text(last)
        for gap in self.canvas.gaps:
            text[gap.slots] &= self._chosen(gap, last.tokens[gap.slots].tolist())
        if not text.any():
            return text
        asked = choose.surest(-last.confidence, text, math.ceil(RECHECKED * int(text.sum())))
        noise = self.backend.noise(len(last.tokens))
        (logits,) = yield [Look(self.run, torch.where(asked, noise, last.tokens), whole=True)]
        free = self.rules.without_beginnings()
        again = free.possible(logits.float(), last.tokens, asked).argmax(-1)
        return asked & (again != last.tokens)

    @property
    def last(self) -> Step:
        """The canvas after the last step."""
        return self.denoising.now

    def done(self, spent: Spent, *, verified: bool) -> wire.Done:
        """Return the end of the run."""
        last = self.last
        record = self.stability.record(last.step)
        return wire.Done(
            self.infill.id,
            "converged",
            self._texts(last),
            wire.Figures(
                steps=last.step,
                forwards=self._forwards + self.run.forwards,
                slots=len(self.canvas.slots),
                tokens=int(self._text(last).sum()),
                regret=record.regret,
                lead=record.lead,
                model_ms=spent.wall_s * 1000,
                cpu_s=spent.cpu_s,
                verified=verified,
                shared=round(spent.shared / max(spent.passes, 1), 2),
            ),
        )

    def _noised(
        self, noise: Tensor, strength: float
    ) -> Generator[Sequence[Look], list[Tensor], tuple[Tensor, Tensor]]:
        """Return (slots,) tokens to start from and which of them are open.

        With strength below 1 the least likely of the old tokens are noised first, so what the model
        agrees with stays. What a gap is required to begin with stays as well.
        """
        open = torch.ones(len(noise), dtype=torch.bool, device=noise.device)
        if strength >= 1:
            return noise, open
        tokens, old = noise.clone(), torch.zeros_like(open)
        for gap in self.canvas.gaps:
            kept = slice(gap.start, gap.start + len(gap.old))
            tokens[kept] = torch.tensor(gap.old, dtype=torch.long, device=noise.device)
            open[kept] = False
            old[kept] = self._chosen(gap, gap.old)
        if not old.any():
            return tokens, open
        log_p = yield from looked_at(self.likelihood(tokens, noise), self.run)
        noised = choose.surest(-log_p, old, math.ceil(strength * int(old.sum()) - 1e-9))
        return tokens, open | noised

    def _drafts(self, step: Step) -> tuple[wire.GapDraft, ...]:
        states = self.stability.saw(step)
        return tuple(
            wire.GapDraft(gap.id, self._spelled(gap, step, states).pieces)
            for gap in self.canvas.gaps
        )

    def _spelled(self, gap: GapSlots, step: Step, states: Tensor) -> canvases.Spelled:
        return canvases.spell(
            gap,
            step.tokens[gap.slots].tolist(),
            states[gap.slots].tolist(),
            step.confidence[gap.slots].tolist(),
            self.vocabulary.spelling,
            self.backend.spec.pad,
        )

    def _texts(self, last: Step) -> tuple[wire.GapText, ...]:
        stable = torch.full(last.tokens.shape, STABLE)
        texts = []
        for gap in self.canvas.gaps:
            spelled = self._spelled(gap, last, stable)
            sure = last.confidence[gap.slots][self._text(last)[gap.slots]].clamp(min=1e-9)
            mean = float(sure.log().mean().exp()) if len(sure) else 0.0
            texts.append(wire.GapText(gap.id, spelled.text, spelled.complete, round(mean, 4)))
        return tuple(texts)

    def _chosen(self, gap: GapSlots, tokens: Sequence[int]) -> Tensor:
        """Return (len(tokens),) booleans: what goes beyond the beginning that the gap must have."""
        reached = accumulate(len(self.vocabulary.spelling[token]) for token in tokens)
        beyond = [end > len(gap.required) for end in reached]
        return torch.tensor(beyond, dtype=torch.bool, device=self.backend.device)

    def _text(self, step: Step) -> Tensor:
        """Return (slots,) booleans: what is no padding."""
        pad = self.backend.spec.pad
        return torch.ones_like(step.open) if pad is None else step.tokens != pad


def choice(decoding: wire.Decoding) -> choose.Choice:
    """Return how slots are chosen under these settings."""
    return choose.Choice(choose.ORDERS[decoding.order], decoding.threshold, decoding.entropy_bound)


def _as_it_was(infill: wire.Infill) -> wire.Done:
    gaps = (part for part in infill.segments if isinstance(part, wire.Gap))
    texts = tuple(wire.GapText(gap.id, gap.old, complete=True, confidence=1.0) for gap in gaps)
    return wire.Done(infill.id, "converged", texts, wire.Figures(verified=True))

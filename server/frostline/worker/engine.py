"""One model, and what is asked of it: a request in, steps out.

A run is a generator that rests after each step, so whoever drives it can look for a cancel in
between, or let another run go first. Nothing here knows sockets.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from frostline.decoding import choose, constrain, loop, schedule
from frostline.models.backend import MaskedBackend, MaskedRun
from frostline.wire import messages as wire
from frostline.worker import canvas as canvases
from frostline.worker.canvas import Canvas
from frostline.worker.stability import Stability

# How much of a finished draft is masked again for the last look (the share that MaskGIT-style
# checks re-mask; see DESIGN section 5, "before commit").
RECHECKED = 0.15


class Engine:
    """Runs requests on one backend."""

    def __init__(self, backend: MaskedBackend) -> None:
        self.backend = backend

    def draft(self, infill: wire.Infill) -> Iterator[wire.Step | wire.Done]:
        """Yield a Step after each denoise step, and Done at the end.

        Raises:
            WorkerRefused: the request does not fit the model.
        """
        cpu, model = time.process_time(), 0.0
        backend, spec = self.backend, self.backend.spec
        strength = min(max(infill.strength, 0.0), 1.0)
        canvas = canvases.build(
            infill.segments,
            infill.preamble,
            backend,
            at_start=infill.at_start,
            strength=strength,
        )
        run = backend.open(canvas)
        began = time.perf_counter()
        tokens, open = self._noised(canvas, run, strength)
        rules = self._rules(canvas)
        stability = Stability(canvas.gap, spec.pad)
        steps = infill.decoding.steps or max(int(open.sum()), 1)
        last: loop.Step | None = None
        for last in loop.denoise(
            tokens,
            open,
            run.predict,
            rules,
            choice(infill.decoding),
            schedule.SCHEDULES[infill.decoding.schedule],
            steps,
            temperature=infill.decoding.temperature,
            generator=torch.Generator().manual_seed(infill.decoding.seed),
        ):
            states = stability.saw(last)
            model += time.perf_counter() - began
            yield wire.Step(infill.id, last.step, last.steps, self._drafts(canvas, last, states))
            began = time.perf_counter()
        if last is None:
            last = _unchanged(tokens, open)
        verified = self._verified(last, run, rules)
        model += time.perf_counter() - began
        record = stability.record(last.step)
        yield wire.Done(
            infill.id,
            "converged",
            self._texts(canvas, last),
            wire.Figures(
                steps=last.step,
                forwards=run.forwards,
                slots=len(canvas.slots),
                tokens=int((last.tokens != spec.pad).sum())
                if spec.pad is not None
                else len(tokens),
                regret=record.regret,
                lead=record.lead,
                model_ms=model * 1000,
                cpu_s=time.process_time() - cpu,
                verified=verified,
            ),
        )

    def score(self, request: wire.Score) -> wire.Scored:
        """Return how likely the model finds each gap's old text: mean nats a token, never above 0."""
        canvas = canvases.build(
            request.segments, request.preamble, self.backend, at_start=request.at_start, spare=False
        )
        old = torch.tensor([one for gap in canvas.gaps for one in gap.old])
        run = self.backend.open(canvas)
        log_p = loop.likelihood(old, self.backend.noise(len(old)), run.predict)
        means = [float(log_p[gap.slots].mean()) if gap.count else 0.0 for gap in canvas.gaps]
        return wire.Scored(request.id, tuple(means), tuple(gap.count for gap in canvas.gaps))

    def _noised(self, canvas: Canvas, run: MaskedRun, strength: float) -> tuple[Tensor, Tensor]:
        """Return (slots,) tokens to start from and which of them are open.

        With strength below 1 the least likely of the old tokens are noised first, so what the model
        agrees with stays.
        """
        noise = self.backend.noise(len(canvas.slots))
        open = torch.ones(len(noise), dtype=torch.bool, device=noise.device)
        if strength >= 1 or not any(gap.old for gap in canvas.gaps):
            return noise, open
        tokens = noise.clone()
        for gap in canvas.gaps:
            kept = slice(gap.start, gap.start + len(gap.old))
            tokens[kept] = torch.tensor(gap.old, device=noise.device)
            open[kept] = False
        old = ~open
        log_p = loop.likelihood(tokens, noise, run.predict).masked_fill(open, float("inf"))
        count = math.ceil(strength * int(old.sum()))
        noised = choose.surest(-log_p, old, count)
        if not count:
            return tokens, torch.zeros_like(open)
        return torch.where(noised, noise, tokens), open | noised

    @cached_property
    def _vocabulary(self) -> tuple[list[bytes], Tensor, Tensor]:
        """Spelling of each id, and (vocabulary,) booleans: never text, and holding a line end."""
        spelling = list(self.backend.tokens.spelled)
        spelling += [b""] * (self.backend.vocabulary - len(spelling))
        banned = torch.tensor([not spelled or _unprintable(spelled) for spelled in spelling])
        banned[list(self.backend.spec.banned)] = True
        banned[self.backend.spec.noise.id] = True
        if (pad := self.backend.spec.pad) is not None:
            banned[pad] = False
        line_ends = torch.tensor([b"\n" in spelled for spelled in spelling])
        return spelling, banned.to(self.backend.device), line_ends.to(self.backend.device)

    def _rules(self, canvas: Canvas) -> constrain.Rules:
        spelling, banned, line_ends = self._vocabulary
        return constrain.Rules(
            gap=canvas.gap.to(self.backend.device),
            banned=banned,
            line_ends=line_ends,
            multiline=[gap.multiline for gap in canvas.gaps],
            required=[gap.required for gap in canvas.gaps],
            token_bytes=spelling,
            pad=self.backend.spec.pad,
        )

    def _drafts(self, canvas: Canvas, step: loop.Step, states: Tensor) -> tuple[wire.GapDraft, ...]:
        return tuple(
            wire.GapDraft(gap.id, self._spelled(gap, step, states).pieces) for gap in canvas.gaps
        )

    def _spelled(self, gap: canvases.GapSlots, step: loop.Step, states: Tensor) -> canvases.Spelled:
        return canvases.spell(
            gap,
            step.tokens[gap.slots].tolist(),
            states[gap.slots].tolist(),
            step.confidence[gap.slots].tolist(),
            self._vocabulary[0],
            self.backend.spec.pad,
        )

    def _texts(self, canvas: Canvas, last: loop.Step) -> tuple[wire.GapText, ...]:
        stable = torch.full(last.tokens.shape, 2)
        texts = []
        for gap in canvas.gaps:
            spelled = self._spelled(gap, last, stable)
            text = last.tokens[gap.slots] != self.backend.spec.pad
            sure = last.confidence[gap.slots][text].clamp(min=1e-9).log()
            mean = float(sure.mean().exp()) if len(sure) else 0.0
            texts.append(wire.GapText(gap.id, spelled.text, spelled.complete, round(mean, 4)))
        return tuple(texts)

    @torch.inference_mode()
    def _verified(self, last: loop.Step, run: MaskedRun, rules: constrain.Rules) -> bool:
        """Return True when the model, asked again about its least sure slots, says the same."""
        pad = self.backend.spec.pad
        text = torch.ones_like(last.open) if pad is None else last.tokens != pad
        if not text.any():
            return True
        count = math.ceil(RECHECKED * int(text.sum()))
        asked = choose.surest(-last.confidence, text, count)
        noise = self.backend.noise(len(last.tokens))
        logits, _ = replace(rules, required=[b""] * len(rules.required)).apply(
            run.predict(torch.where(asked, noise, last.tokens)).float(), last.tokens, asked
        )
        return bool((logits.argmax(-1)[asked] == last.tokens[asked]).all())


def choice(decoding: wire.Decoding) -> choose.Choice:
    """Return how slots are chosen under these settings."""
    return choose.Choice(choose.ORDERS[decoding.order], decoding.threshold, decoding.entropy_bound)


def _unchanged(tokens: Tensor, open: Tensor) -> loop.Step:
    ones = torch.ones(len(tokens), device=tokens.device)
    return loop.Step(0, 0, tokens, open, ones, torch.zeros_like(ones))


def _unprintable(spelled: bytes) -> bool:
    # Control characters are never wanted; CR is not either: gaps are written with LF and get the
    # file's own line ends at the very last.
    return any((byte < 0x20 and byte not in b"\t\n") or byte == 0x7F for byte in spelled)

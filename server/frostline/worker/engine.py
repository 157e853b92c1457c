"""One model, and what is asked of it: a request in, steps out.

A run is a generator that rests after each step, so whoever drives it can look for a cancel in
between, or let another run go first. Nothing here knows sockets.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor

from frostline.decoding import choose, constrain, loop, schedule
from frostline.errors import WorkerRefused
from frostline.models.backend import MaskedBackend, MaskedRun
from frostline.wire import messages as wire
from frostline.worker import canvas as canvases
from frostline.worker.canvas import Canvas
from frostline.worker.stability import STABLE, Stability

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
        strength = min(max(infill.strength, 0.0), 1.0)
        if strength == 0:
            yield _as_it_was(infill)
            return
        spent = Spent()
        with spent:
            canvas = canvases.build(
                infill.segments,
                infill.preamble,
                self.backend,
                at_start=infill.at_start,
                strength=strength,
            )
            run = self.backend.open(canvas)
            rules = self._rules(canvas)
            stability = Stability(canvas.gap, self.backend.spec.pad)
            tokens, open = self._noised(canvas, run, strength)
        last = _before_the_first(tokens, open)
        steps = loop.denoise(
            tokens,
            open,
            run.predict,
            rules,
            choice(infill.decoding),
            schedule.SCHEDULES[infill.decoding.schedule],
            infill.decoding.steps or int(open.sum()),
            temperature=infill.decoding.temperature,
            generator=torch.Generator().manual_seed(infill.decoding.seed),
        )
        while last.open.any():
            with spent:
                last = _next(steps)
                drafts = self._drafts(canvas, last, stability.saw(last))
            yield wire.Step(infill.id, last.step, last.steps, drafts)
        with spent:
            verified = self._verified(canvas, last, run)
        record = stability.record(last.step)
        yield wire.Done(
            infill.id,
            "converged",
            self._texts(canvas, last),
            wire.Figures(
                steps=last.step,
                forwards=run.forwards,
                slots=len(canvas.slots),
                tokens=int(self._text(last).sum()),
                regret=record.regret,
                lead=record.lead,
                model_ms=spent.wall_s * 1000,
                cpu_s=spent.cpu_s,
                verified=verified,
            ),
        )

    def score(self, request: wire.Score) -> wire.Scored:
        """Return how likely the model finds each gap's old text: mean nats a token, never above 0."""
        canvas = canvases.build(
            request.segments, request.preamble, self.backend, at_start=request.at_start, spare=False
        )
        tokens = [one for gap in canvas.gaps for one in gap.old]
        old = torch.tensor(tokens, device=self.backend.device)
        run = self.backend.open(canvas)
        log_p = loop.likelihood(old, self.backend.noise(len(old)), run.predict)
        means = [float(log_p[gap.slots].mean()) if gap.count else 0.0 for gap in canvas.gaps]
        return wire.Scored(request.id, tuple(means), tuple(gap.count for gap in canvas.gaps))

    def _noised(self, canvas: Canvas, run: MaskedRun, strength: float) -> tuple[Tensor, Tensor]:
        """Return (slots,) tokens to start from and which of them are open.

        With strength below 1 the least likely of the old tokens are noised first, so what the model
        agrees with stays. What a gap is required to begin with stays as well.
        """
        noise = self.backend.noise(len(canvas.slots))
        open = torch.ones(len(noise), dtype=torch.bool, device=noise.device)
        if strength >= 1:
            return noise, open
        tokens, old = noise.clone(), torch.zeros_like(open)
        for gap in canvas.gaps:
            kept = slice(gap.start, gap.start + len(gap.old))
            tokens[kept] = torch.tensor(gap.old, dtype=torch.long, device=noise.device)
            open[kept] = False
            old[kept] = self._chosen(gap, gap.old)
        if not old.any():
            return tokens, open
        log_p = loop.likelihood(tokens, noise, run.predict)
        noised = choose.surest(-log_p, old, math.ceil(strength * int(old.sum()) - 1e-9))
        return torch.where(noised, noise, tokens), open | noised

    @cached_property
    def _vocabulary(self) -> tuple[list[bytes], Tensor, Tensor]:
        """Spelling of each id, and (vocabulary,) booleans: never text, and holding a line end."""
        spec = self.backend.spec
        spelling = list(self.backend.tokens.spelled)
        spelling += [b""] * (self.backend.vocabulary - len(spelling))
        # Special tokens spell nothing, whatever a vocabulary calls them.
        for one in (*spec.banned, spec.noise.id, spec.pad):
            if one is not None:
                spelling[one] = b""
        banned = torch.tensor([not spelled or _unprintable(spelled) for spelled in spelling])
        if spec.pad is not None:
            banned[spec.pad] = False
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
        stable = torch.full(last.tokens.shape, STABLE)
        texts = []
        for gap in canvas.gaps:
            spelled = self._spelled(gap, last, stable)
            sure = last.confidence[gap.slots][self._text(last)[gap.slots]].clamp(min=1e-9)
            mean = float(sure.log().mean().exp()) if len(sure) else 0.0
            texts.append(wire.GapText(gap.id, spelled.text, spelled.complete, round(mean, 4)))
        return tuple(texts)

    def _chosen(self, gap: canvases.GapSlots, tokens: Sequence[int]) -> Tensor:
        """Return (len(tokens),) booleans: what goes beyond the beginning that the gap must have."""
        reached = accumulate(len(self._vocabulary[0][token]) for token in tokens)
        beyond = [end > len(gap.required) for end in reached]
        return torch.tensor(beyond, dtype=torch.bool, device=self.backend.device)

    def _text(self, step: loop.Step) -> Tensor:
        """Return (slots,) booleans: what is no padding."""
        pad = self.backend.spec.pad
        return torch.ones_like(step.open) if pad is None else step.tokens != pad

    @torch.inference_mode()
    def _verified(self, canvas: Canvas, last: loop.Step, run: MaskedRun) -> bool:
        """Return True when the model, asked again about its least sure slots, says the same."""
        text = self._text(last)
        for gap in canvas.gaps:
            text[gap.slots] &= self._chosen(gap, last.tokens[gap.slots].tolist())
        if not text.any():
            return True
        count = math.ceil(RECHECKED * int(text.sum()))
        asked = choose.surest(-last.confidence, text, count)
        noise = self.backend.noise(len(last.tokens))
        logits = replace(self._rules(canvas), required=[b""] * len(canvas.gaps)).possible(
            run.predict(torch.where(asked, noise, last.tokens)).float(), last.tokens, asked
        )
        return bool((logits.argmax(-1)[asked] == last.tokens[asked]).all())


def choice(decoding: wire.Decoding) -> choose.Choice:
    """Return how slots are chosen under these settings."""
    return choose.Choice(choose.ORDERS[decoding.order], decoding.threshold, decoding.entropy_bound)


def _before_the_first(tokens: Tensor, open: Tensor) -> loop.Step:
    ones = torch.ones(len(tokens), device=tokens.device)
    return loop.Step(0, 0, tokens, open, ones, torch.zeros_like(ones))


def _next(steps: Iterator[loop.Step]) -> loop.Step:
    try:
        return next(steps)
    except loop.NothingFits as error:
        raise WorkerRefused(
            "nothing-fits",
            "nothing that the model can write fits here; select whole words or lines and ask again",
        ) from error


def _as_it_was(infill: wire.Infill) -> wire.Done:
    gaps = (part for part in infill.segments if isinstance(part, wire.Gap))
    texts = tuple(wire.GapText(gap.id, gap.old, complete=True, confidence=1.0) for gap in gaps)
    return wire.Done(infill.id, "converged", texts, wire.Figures(verified=True))


class Spent:
    """What the stretches of work under `with` took together: a run rests while others have their turn."""

    def __init__(self) -> None:
        self.wall_s = self.cpu_s = 0.0

    def __enter__(self) -> None:
        self.wall_s -= time.perf_counter()
        self.cpu_s -= time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall_s += time.perf_counter()
        self.cpu_s += time.process_time()


def _unprintable(spelled: bytes) -> bool:
    # Control characters are never wanted; CR is not either: gaps are written with LF and get the
    # file's own line ends at the very last.
    return any((byte < 0x20 and byte not in b"\t\n") or byte == 0x7F for byte in spelled)

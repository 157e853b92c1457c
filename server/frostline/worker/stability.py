"""Which slots have stopped changing, and how often that was wrong.

A slot is stable when its token has been the same for two steps and it settled with a probability of
at least 0.5, so that its distribution is a single point, the text cannot end before it, and the last
look is not likely to doubt it; or, still open, its probability is
at least 0.9, its distribution moved by at most 0.01 nats, and nothing open stands to its left in its
gap, where the text could end. After the last step all are. (The rule of DESIGN section 5; the
divergence between steps as a sign of what a slot still depends on is that of SWD, arXiv 2604.17068.)

*Regret* is the share of slots shown as stable that changed later, *lead* the mean number of steps
between a slot's stable mark and the end. Pads count in neither: they settle first and would flatter
both.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from frostline.decoding.length import Resized
from frostline.decoding.loop import Step

SURE = 0.9
LIKELY = 0.5
STILL = 0.01
OPEN, DRAFT, STABLE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Record:
    """How the stable marks fared; None where no slot was ever marked."""

    regret: float | None
    lead: float | None


class Stability:
    """Watches the steps of one run.

    Args:
        gap: (slots,) number of each slot's gap.
        pad: the token that fills a gap behind its text, or None.
        final: whether a slot that settles stays as it is whatever comes: then it is stable at once.
    """

    def __init__(self, gap: Tensor, pad: int | None, *, final: bool = False) -> None:
        self._gap = gap
        self._pad = pad
        self._final = final
        self._before: Tensor | None = None
        self._marked_at = torch.full(gap.shape, -1)
        self._marked_as = torch.full(gap.shape, -1)
        self._regretted = torch.zeros(gap.shape, dtype=torch.bool)

    def saw(self, step: Step) -> Tensor:
        """Return (slots,) the state of each slot after this step: open, draft or stable."""
        tokens, open = step.tokens.cpu(), step.open.cpu()
        same = torch.zeros_like(open) if self._before is None else tokens == self._before
        likely = step.confidence.cpu() >= LIKELY
        still = (step.confidence.cpu() >= SURE) & (step.drift.cpu() <= STILL)
        stable = same & ((~open & likely) | (still & ~self._open_before(open)))
        if self._final:
            stable = ~open
        if not open.any():
            stable = torch.ones_like(open)
        self._before = tokens
        self._remember(step.step, tokens, stable)
        return torch.where(stable, STABLE, torch.where(open, OPEN, DRAFT))

    def resize(self, to: Resized, gap: Tensor) -> None:
        """Go on with a canvas of another length; a slot that divided was never marked."""
        source, fresh = to.source.cpu(), to.fresh.cpu()
        self._gap = gap
        self._marked_at = self._marked_at[source].masked_fill(fresh, -1)
        self._marked_as = self._marked_as[source].masked_fill(fresh, -1)
        self._regretted = self._regretted[source] & ~fresh
        if self._before is not None:
            self._before = self._before[source].masked_fill(fresh, -1)

    def _open_before(self, open: Tensor) -> Tensor:
        result = torch.zeros_like(open)
        for number in self._gap.unique().tolist():
            here = self._gap == number
            counted = torch.cumsum(open[here].long(), 0) - open[here].long()
            result[here] = counted > 0
        return result

    def _remember(self, step: int, tokens: Tensor, stable: Tensor) -> None:
        self._regretted |= (self._marked_at >= 0) & (tokens != self._marked_as)
        text = torch.ones_like(stable) if self._pad is None else tokens != self._pad
        new = stable & text & (self._marked_at < 0)
        self._marked_at[new] = step
        self._marked_as[new] = tokens[new]

    def record(self, steps: int) -> Record:
        """Return how the marks fared in a run of `steps` steps."""
        marked = self._marked_at >= 0
        count = int(marked.sum())
        if not count:
            return Record(None, None)
        lead = (steps - self._marked_at[marked]).float().mean()
        return Record(int(self._regretted.sum()) / count, float(lead))

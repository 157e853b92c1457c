"""Which open slots settle in this step.

Three orders (by confidence, by margin, by entropy: Dream, DreamOn) and two ways to take more than
the schedule asks for (a confidence threshold: Fast-dLLM; an entropy bound: EB-Sampler, arXiv
2505.24857). An order gives a score, higher is surer; a way gives the settled slots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Views:
    """What one pass says about each slot; all of shape (slots,).

    Attributes:
        proposed: the token to settle on, sampled or the likeliest.
        confidence: its probability.
        p1: probability of the likeliest token.
        p2: probability of the second likeliest.
        entropy: nats of the whole distribution.
    """

    proposed: Tensor
    confidence: Tensor
    p1: Tensor
    p2: Tensor
    entropy: Tensor


Order = Callable[[Views], Tensor]


def by_confidence(views: Views) -> Tensor:
    """Return the probability of the proposed token."""
    return views.confidence


def by_margin(views: Views) -> Tensor:
    """Return how far the likeliest token is ahead of the second."""
    return views.p1 - views.p2


def by_entropy(views: Views) -> Tensor:
    """Return the negative entropy."""
    return -views.entropy


ORDERS: dict[str, Order] = {
    "confidence": by_confidence,
    "margin": by_margin,
    "entropy": by_entropy,
}


@dataclass(frozen=True, slots=True)
class Choice:
    """How slots are chosen: an order, and at most one way to take more than the schedule's count."""

    order: Order = by_confidence
    threshold: float | None = 0.9
    entropy_bound: float | None = None

    def settled(self, views: Views, ready: Tensor, count: int) -> Tensor:
        """Return (slots,) booleans: the `count` surest of `ready`, and whatever else qualifies.

        At least one of `ready` settles, so a loop over this ends.
        """
        chosen = surest(self.order(views), ready, max(count, 1))
        if self.threshold is not None:
            chosen = chosen | (ready & (views.confidence >= self.threshold))
        if self.entropy_bound is not None:
            chosen = chosen | within_entropy(views.entropy, ready, self.entropy_bound)
        return chosen


def surest(scores: Tensor, ready: Tensor, count: int) -> Tensor:
    """Return (slots,) booleans: the `count` highest scores among `ready`, the earlier slot on a tie."""
    candidates = ready.nonzero().flatten()
    order = torch.sort(scores[candidates], descending=True, stable=True).indices[:count]
    chosen = torch.zeros_like(ready)
    chosen[candidates[order]] = True
    return chosen


def within_entropy(entropy: Tensor, ready: Tensor, bound: float) -> Tensor:
    """Return (slots,) booleans: the surest slots whose joint entropy, less the largest, is in bound.

    The sum without its last term bounds the information that settling them at once can lose.
    """
    candidates = ready.nonzero().flatten()
    ranked = torch.sort(entropy[candidates], stable=True)
    sums = torch.cumsum(ranked.values, 0) - ranked.values
    chosen = torch.zeros_like(ready)
    chosen[candidates[ranked.indices[sums <= bound]]] = True
    return chosen

"""What a run is made of, but for the data."""

from __future__ import annotations

from dataclasses import dataclass, field

from frostline.train.optimiser import Rates


@dataclass(frozen=True, slots=True)
class Plan:
    """Budget, batches and rates of a run.

    Attributes:
        hours: budget of training time; the schedule follows the clock.
        steps: budget in steps instead; then the same seed gives the same weights.
        windows: window sizes, each with its share of the steps.
        tokens: of a micro-batch; a step has `micro` of them.
        left: share of left-to-right batches at the begin, and from the middle of the run on.
        scattered: share of the other batches that mask anywhere.
        every: seconds between checkpoints.
        helpers: processes that make batches ahead; 0 makes each in its step.
        half: compute products of matrices in bf16.
        compiled: have torch fuse the layers; pays from some hundreds of steps on.
    """

    hours: float = 0.0
    steps: int = 0
    seed: int = 0
    windows: tuple[tuple[int, float], ...] = ((256, 0.8), (384, 0.2))
    tokens: int = 1280
    micro: int = 4
    left: tuple[float, float] = (0.3, 0.1)
    scattered: float = 0.2
    every: float = 240.0
    helpers: int = 0
    half: bool = False
    compiled: bool = False
    rates: Rates = field(default_factory=Rates)

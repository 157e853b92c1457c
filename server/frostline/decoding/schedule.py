"""How many slots settle in each step: the noise schedule, as the share still open over time.

Linear is that of MDLM and LLaDA, cosine that of MaskGIT: few slots first, while little is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[float], float]


def linear(time: float) -> float:
    """Return the share of slots still open at `time` from 0 to 1."""
    return 1.0 - time


def cosine(time: float) -> float:
    """Return the share of slots still open at `time` from 0 to 1."""
    return math.cos(time * math.pi / 2)


SCHEDULES: dict[str, Schedule] = {"linear": linear, "cosine": cosine}


def due(schedule: Schedule, step: int, steps: int, slots: int, open_now: int) -> int:
    """Return how many of the `open_now` slots have to settle in step `step` (from 0) of `steps`.

    At least one while any is open, and all of them in the last step.
    """
    if open_now == 0:
        return 0
    if step + 1 >= steps:
        return open_now
    open_after = math.floor(slots * schedule((step + 1) / steps) + 1e-9)
    return min(max(open_now - open_after, 1), open_now)

"""The clock that a machine's device is measured with."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

# Seconds since some moment.
Clock = Callable[[], float]


def clock_of(device: torch.device) -> Clock:
    """Return the clock for work on `device`.

    On a processor what it worked is counted, so that other programs do not show; elsewhere what
    passed, once the device has done all that it was given.
    """
    if device.type == "cpu":
        return time.process_time
    wait = torch.cuda.synchronize if device.type == "cuda" else torch.mps.synchronize

    def clock() -> float:
        wait()
        return time.perf_counter()

    return clock

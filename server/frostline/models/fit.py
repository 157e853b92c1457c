"""Whether a model fits into memory, asked before anything of it is loaded.

What is counted is the weights, which are nearly all of it, and a tenth more for what a pass needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import psutil
import torch

from frostline.errors import ModelUnusable

BEYOND_WEIGHTS = 1.1
GB = 1e9


@dataclass(frozen=True, slots=True)
class Way:
    """One way to hold a model's numbers."""

    said: str
    dtype: torch.dtype
    bytes: float


FULL = Way("float32", torch.float32, 4)
HALF = Way("bfloat16", torch.bfloat16, 2)


def chosen(name: str, numbers: int, device: torch.device) -> Way:
    """Return how a model of so many numbers is held on `device`: in full on a CPU where there is room.

    Raises:
        ModelUnusable: it does not fit, with what would.
    """
    room = free(device)
    ways = (FULL, HALF) if device.type == "cpu" else (HALF,)
    for way in ways:
        if needed(numbers, way) <= room:
            return way
    raise ModelUnusable(_too_large(name, numbers, room, device))


def needed(numbers: int, way: Way) -> float:
    """Return how many bytes a model of so many numbers takes."""
    return numbers * way.bytes * BEYOND_WEIGHTS


def free(device: torch.device) -> float:
    """Return how many bytes are free on `device`."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        # Shared with everything else: what Metal recommends, less what is in use.
        held = torch.mps.driver_allocated_memory()
        return float(torch.mps.recommended_max_memory() - held)
    return float(psutil.virtual_memory().available)


def _too_large(name: str, numbers: int, room: float, device: torch.device) -> str:
    least = needed(numbers, HALF)
    fits = room / (HALF.bytes * BEYOND_WEIGHTS)
    return (
        f"{name} has {numbers / GB:.1f} billion numbers and needs {least / GB:.1f} GB, and "
        f"{room / GB:.1f} GB are free on {device.type}; a model of up to {fits / GB:.1f} billion would fit"
    )

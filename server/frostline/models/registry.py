"""A model's name to a backend: the embedded one, or a folder."""

from __future__ import annotations

from collections.abc import Callable

import torch

from frostline.errors import ModelUnusable
from frostline.models import fit, folder, selftest, weights
from frostline.models.backend import Backend, MaskedBackend
from frostline.models.block import BlockBackend
from frostline.models.spec import ModelSpec
from frostline.models.tokens import Tokens

folder_of = folder.folder_of


def device_of(name: str) -> torch.device:
    """Return the device called `name`; "auto" takes the best there is.

    Raises:
        ModelUnusable: this machine does not have it.
    """
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        name = next(device for device in ("cuda", "mps", "cpu") if there[device])
    if not there[name]:
        raise ModelUnusable(
            f"this machine has no {name} device that torch can use; set `device` to auto"
        )
    return torch.device(name)


def load(name: str, device: str, progress: weights.Progress = lambda _: None) -> Backend:
    """Return the model called `name`, loaded on `device` and tried.

    Args:
        progress: told the share that is loaded, 0 to 1.

    Raises:
        ModelUnusable: it cannot be run, with the reason and what to do.
    """
    at = folder_of(name)
    spec = folder.read(at)
    kind = _backend_of(spec)
    tokens = Tokens(at)
    chosen = device_of(device)
    way = fit.chosen(at, chosen)
    backend = kind(at, spec, tokens, weights.load(at, chosen, way.dtype, progress))
    selftest.check(backend)
    return backend


def _backend_of(spec: ModelSpec) -> Callable[..., Backend]:
    match spec.noise.kind, spec.attention:
        case "mask", "full":
            return MaskedBackend
        case "mask", "block" if spec.block:
            return BlockBackend
    raise ModelUnusable(
        f"{spec.name} denoises in a way that is not supported yet "
        f"({spec.noise.kind} noise, {spec.attention} attention, {spec.length.kind} length)"
    )

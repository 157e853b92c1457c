"""A model's name to a backend: the embedded one, a folder, or a GGUF file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from frostline.errors import ModelUnusable
from frostline.models import fim, fit, folder, gguf, gguf_model, gguf_said, selftest, weights
from frostline.models.backend import Backend, MaskedBackend
from frostline.models.block import BlockBackend
from frostline.models.causal import CausalBackend
from frostline.models.prefixed import CanvasBackend
from frostline.models.published import Published
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
    at, chosen = folder_of(name), device_of(device)
    backend = _of_file(at, chosen, progress) if at.is_file() else _of(at, chosen, progress)
    selftest.check(backend)
    return backend


def _of(at: Path, device: torch.device, progress: weights.Progress) -> Backend:
    """Return the model of a folder."""
    spec = folder.read(at)
    kind = _backend_of(spec, at)
    tokens = Tokens(at)
    way = fit.chosen(at.name, weights.numbers_in(at), device)
    return kind(at, spec, tokens, weights.load(at, device, way.dtype, progress))


def _of_file(at: Path, device: torch.device, progress: weights.Progress) -> Backend:
    """Return the model of a GGUF file. Its numbers are made floats, whatever they are in the file."""
    file = gguf.read(at)
    spec, asked = gguf_said.spec(file), gguf_said.asked(file)
    tokens = Tokens(at, gguf_said.tokenizer(file))
    way = fit.chosen(at.name, gguf_said.numbers(file), device)
    model = gguf_model.module(file, device, way.dtype, progress)
    return CausalBackend(at, spec, tokens, model, asked)


def _backend_of(spec: ModelSpec, at: Path) -> Callable[..., Backend]:
    match spec.noise.kind, spec.attention:
        case "mask", "full":
            return MaskedBackend
        case "mask", "block" if spec.block:
            return BlockBackend
        case "uniform", "prefix_canvas" if spec.block:
            return CanvasBackend
        case "mask", "causal":
            return partial(CausalBackend, fim=fim.asked(Published(at)))
    raise ModelUnusable(
        f"{spec.name} denoises in a way that is not supported yet "
        f"({spec.noise.kind} noise, {spec.attention} attention, {spec.length.kind} length)"
    )

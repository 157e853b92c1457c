"""A model's name to a backend: the embedded one, or a folder."""

from __future__ import annotations

import torch

from frostline.errors import ModelUnusable
from frostline.models import spec as specs
from frostline.models import weights
from frostline.models.backend import MaskedBackend
from frostline.models.tokens import Tokens

folder_of = specs.folder_of


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


def load(name: str, device: str, progress: weights.Progress = lambda _: None) -> MaskedBackend:
    """Return the model called `name`, loaded on `device`.

    Args:
        progress: told the share that is loaded, 0 to 1.

    Raises:
        ModelUnusable: it cannot be run, with the reason and what to do.
    """
    folder = folder_of(name)
    spec = specs.read(folder)
    if spec.noise.kind != "mask" or spec.attention != "full" or spec.length.kind == "expand_delete":
        raise ModelUnusable(
            f"{spec.name} denoises in a way that is not supported yet "
            f"({spec.noise.kind} noise, {spec.attention} attention, {spec.length.kind} length)"
        )
    tokens = Tokens(folder)
    chosen = device_of(device)
    backend = MaskedBackend(folder, spec, tokens, weights.load(folder, chosen, progress))
    _check_ids(spec, backend)
    return backend


def _check_ids(spec: specs.ModelSpec, backend: MaskedBackend) -> None:
    signs = {one for one in (spec.noise.id, spec.pad, spec.begin_of_file) if one is not None}
    if not all(0 <= one < backend.vocabulary for one in signs.union(spec.banned)):
        raise ModelUnusable(f"{spec.name} names a special token outside its vocabulary")
    if backend.tokens.size > backend.vocabulary:
        raise ModelUnusable(f"{spec.name}'s tokenizer has more entries than its weights")
    for one in signs:
        text = backend.tokens.spell([one]).decode(errors="ignore")
        if one in backend.tokens.encode(text):
            raise ModelUnusable(
                f"{spec.name}'s tokenizer reads {text!r} in a text as a special token; "
                "it could not keep a file with that in it intact, so it is not used"
            )

"""What is tried on a model before anybody's text is given to it.

The tokenizer's round trip is tried where it is read (`tokens.py`). Here: special tokens are where the
spec says, a text cannot spell them, frozen tokens stay as they are whatever stands in the slots, and
a slot is read where the weights put it.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import torch
from torch import Tensor

from frostline.errors import ModelUnusable
from frostline.models.backend import Backend, MaskedBackend

# What every model that has seen any code finds likely.
KNOWN = "def add(a, b):\n    return a + b\n\n\ndef main():\n    for i in range(10):\n        print(add(i, i))\n"
# Nats a token. Below, a model has nothing to say about the sentence, and nothing follows.
KNOWS = -4.0
AHEAD = 2.0


def check(backend: Backend) -> None:
    """Return when all is as the spec says.

    Raises:
        ModelUnusable: something is not, with what.
    """
    _check_ids(backend)
    _check_frozen(backend)
    if isinstance(backend, MaskedBackend):
        _check_shift(backend)


def _check_ids(backend: Backend) -> None:
    spec = backend.spec
    named = (spec.noise.id if spec.noise.kind == "mask" else None, spec.pad, spec.begin_of_file)
    signs = {one for one in named if one is not None}
    if spec.length.kind == "expand_delete":
        signs |= {spec.length.id, spec.length.delete}
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


@dataclass(frozen=True, slots=True)
class _Window:
    ids: Tensor
    slots: Tensor


def _check_frozen(backend: Backend) -> None:
    """Try that what stands in slots is never kept: the same question has the same answer again."""
    ids = torch.tensor(backend.tokens.encode(KNOWN)[:8])
    run = backend.open(_Window(ids, torch.tensor([3, 4])))
    noise = backend.noise(2)
    before = run.predict(noise)
    run.predict(ids[[5, 6]].to(noise.device))
    if not torch.allclose(before, backend.open(_Window(ids, torch.tensor([3, 4]))).predict(noise)):
        raise ModelUnusable(
            f"{backend.spec.name} answers the same question in two ways; it is not used"
        )


def _check_shift(backend: MaskedBackend) -> None:
    """Try both shifts on a known sentence, where the weights know anything of it."""
    spec = backend.spec
    here = _known(backend)
    other = msgspec.structs.replace(spec, shift=1 - spec.shift)
    twin = type(backend)(backend.folder, other, backend.tokens, backend.model)
    there = _known(twin)
    if there > KNOWS and there > here + AHEAD:
        raise ModelUnusable(
            f"{spec.name} is described as reading a token {'before' if spec.shift else 'at'} its place, "
            "and its weights say otherwise; correct `shift` in its frostline.json"
        )


def _known(backend: Backend) -> float:
    """Return the mean log-probability (nats) of every fourth token of the sentence, masked."""
    ids = torch.tensor(backend.tokens.encode(KNOWN))
    slots = torch.arange(2, len(ids), 4)
    logits = backend.open(_Window(ids, slots)).predict(backend.noise(len(slots))).float()
    log_p = torch.log_softmax(logits, -1)
    return float(log_p.gather(-1, ids[slots].to(log_p.device)[:, None]).mean())

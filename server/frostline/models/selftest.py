"""What is tried on a model before anybody's text is given to it.

The tokenizer's round trip is tried where it is read (`tokens.py`). Here: special tokens are where the
spec says, a text cannot spell them, frozen tokens stay as they are and are seen, whatever stands in the
slots, and a slot is read where the weights put it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec
import torch
from torch import Tensor

from frostline.errors import ModelUnusable
from frostline.models.backend import Backend, MaskedBackend

# What every model that has seen any code finds likely.
KNOWN = (
    "def add(a, b):\n    return a + b\n\n\ndef main():\n    for i in range(10):\n        print(add(i, i))\n"
    "\n\nclass Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y = y\n"
)
# Every fourth token is a slot, in two looks that share none.
STRIDE, STARTS = 4, (2, 4)
# A model knows something of the sentence where its mean is so many nats a token above blind guessing.
KNOWS = 1.0
# Where it does, it is read at the other place when that is better by so many nats a token, and by so many
# standard errors of the differences, token by token.
AHEAD, ERRORS = 0.3, 3.0


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
    """Try that what stands in slots is never kept, and that what stands around them is looked at."""
    ids, slots = torch.tensor(backend.tokens.encode(KNOWN)[:16]), torch.tensor([7, 8])
    window, noise = _Window(ids.clone(), slots), backend.noise(2)
    run = backend.open(window)
    before = run.predict(noise)
    run.predict(ids[[12, 13]].to(noise.device))
    again = run.predict(noise)
    if not torch.equal(window.ids, ids) or not _alike(before, again):
        raise ModelUnusable(
            f"{backend.spec.name} lets what stands in a hole change what is around it; it is not used"
        )
    other = ids.clone()
    other[slots[0] - 1] = ids[slots[0]]
    if torch.equal(before, backend.open(_Window(other, slots)).predict(noise)):
        raise ModelUnusable(
            f"{backend.spec.name} answers the same whatever stands around a hole; it is not used"
        )


def _alike(one: Tensor, other: Tensor) -> bool:
    # Short numbers and other kernels give a little another sum.
    return bool((one - other).abs().max() <= 0.05 * one.abs().max())


def _check_shift(backend: MaskedBackend) -> None:
    """Read slots of a known sentence at both places, where the weights know anything of it.

    Each token is compared with itself, so that how hard a sentence is does not matter. Random weights
    know nothing, however far apart the two readings are.
    """
    spec = backend.spec
    other = msgspec.structs.replace(spec, shift=1 - spec.shift)
    twin = type(backend)(backend.folder, other, backend.tokens, backend.model)
    here, there = _known(backend), _known(twin)
    ahead = there - here
    error = float(ahead.std()) / math.sqrt(len(ahead))
    knows = float(there.mean()) > KNOWS - math.log(backend.vocabulary)
    if knows and float(ahead.mean()) > max(AHEAD, ERRORS * error):
        raise ModelUnusable(
            f"{spec.name} is described as reading a token {'before' if spec.shift else 'at'} its place, "
            "and its weights say otherwise; correct `shift` in its frostline.json"
        )


def _known(backend: Backend) -> Tensor:
    """Return (slots,) log-probabilities (nats) of every second token of the sentence, three of four seen."""
    ids, found = torch.tensor(backend.tokens.encode(KNOWN)), []
    for start in STARTS:
        slots = torch.arange(start, len(ids), STRIDE)
        logits = backend.open(_Window(ids, slots)).predict(backend.noise(len(slots))).float()
        log_p = torch.log_softmax(logits, -1)
        found.append(log_p.gather(-1, ids[slots].to(log_p.device)[:, None]).squeeze(-1))
    return torch.cat(found)

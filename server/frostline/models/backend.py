"""The face of a model that the worker sees, and the backend of masked models with full attention.

Shift, positions and the special tokens around a window are the backend's business; the loop is
handed slots and gives slots back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from frostline.models.spec import ModelSpec
from frostline.models.tokens import Tokens


class Canvas(Protocol):
    """A window of tokens, some of which are slots."""

    @property
    def ids(self) -> Tensor:
        """(length,) tokens; what stands at slots is of no account."""

    @property
    def slots(self) -> Tensor:
        """(slots,) where the slots lie, ascending."""


class Backend(Protocol):
    """What a model owes the worker."""

    spec: ModelSpec
    tokens: Tokens
    device: torch.device

    def open(self, canvas: Canvas) -> MaskedRun:
        """Return a run over this canvas."""

    def noise(self, count: int) -> Tensor:
        """Return (count,) tokens that say nothing."""


class MaskedBackend:
    """A masked model that sees the whole window: one pass, no cache, both sides in view."""

    def __init__(self, folder: Path, spec: ModelSpec, tokens: Tokens, model: nn.Module) -> None:
        self.folder = folder
        self.spec = spec
        self.tokens = tokens
        self.device = next(model.parameters()).device
        # transformers' classes are typed as little more than modules.
        self.model: Any = model
        self.vocabulary: int = cast(Any, model).config.vocab_size

    def open(self, canvas: Canvas) -> MaskedRun:
        return MaskedRun(self, canvas)

    def noise(self, count: int) -> Tensor:
        return torch.full((count,), self.spec.noise.id, device=self.device)


class MaskedRun:
    """Passes over one canvas. Counts them in `forwards`."""

    def __init__(self, backend: MaskedBackend, canvas: Canvas) -> None:
        self._backend = backend
        ids, slots = canvas.ids, canvas.slots
        if len(slots) and int(slots[0]) < backend.spec.shift:
            # The first slot is read where nothing stands. A line end says the least of what is to come.
            before = torch.tensor(backend.tokens.encode("\n"))
            ids, slots = torch.cat([before, ids]), slots + len(before)
        self._ids, self._slots = ids.to(backend.device), slots.to(backend.device)
        length = len(self._ids)
        # Zero everywhere: nothing is hidden. An explicit mask keeps the class from building its own.
        kind = next(backend.model.parameters()).dtype
        self._mask = torch.zeros((1, 1, length, length), device=backend.device, dtype=kind)
        self.forwards = 0

    @torch.inference_mode()
    def predict(self, tokens: Tensor) -> Tensor:
        """Return (slots, vocabulary) logits for each slot, given (slots,) tokens in them.

        The window's frozen tokens are written fresh each time, so no step can have changed them.
        """
        ids = self._ids.clone()
        ids[self._slots] = tokens.to(ids.device)
        hidden = self._backend.model.model(
            input_ids=ids[None], attention_mask=self._mask, use_cache=False
        ).last_hidden_state[0]
        self.forwards += 1
        # With a shift the first slot is read at the last frozen token before it.
        read_at = self._slots - self._backend.spec.shift
        logits: Tensor = self._backend.model.lm_head(hidden[read_at])
        return logits

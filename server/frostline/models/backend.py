"""The face of a model that the worker sees, and the backend of masked models with full attention.

Shift, positions and the special tokens around a window are the backend's business; the loop is
handed slots and gives slots back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from frostline.models import attention
from frostline.models.attention import Kept, Share
from frostline.models.memory import Memory
from frostline.models.spec import ModelSpec
from frostline.models.tokens import Tokens

# A window is looked at as a whole again after this many looks at its slots alone, or when this
# share of its slots has other tokens than at the last such look.
REFRESH_EVERY = 12
REFRESH_CHANGED = 0.34
# Tokens on each side of a slot that are computed with it: what stands near it changes most with it
# (the neighbourhood that dInfer refreshes). Without them 85 % of texts are those of whole looks,
# with them 98 %.
VICINITY = 48


class Canvas(Protocol):
    """A window of tokens, some of which are slots."""

    @property
    def ids(self) -> Tensor:
        """(length,) tokens; what stands at slots is of no account."""

    @property
    def slots(self) -> Tensor:
        """(slots,) where the slots lie, ascending."""


class Run(Protocol):
    """Looks at one canvas. Counts them in `forwards`.

    Attributes:
        turns: (slots,) when each slot may settle: those of a turn wait for all earlier ones; None for
            all at once.
    """

    forwards: int

    @property
    def turns(self) -> Tensor | None: ...

    def predict(self, tokens: Tensor) -> Tensor:
        """Return (slots, vocabulary) logits for each slot, given (slots,) tokens in them."""


@dataclass(frozen=True, slots=True)
class Look:
    """A question to a model: what would stand in a run's slots, given these tokens in them?

    Attributes:
        tokens: (slots,).
        whole: look at the whole window anew and keep nothing of it, whatever is kept: for the
            last word before a commit.
        believed: (slots, vocabulary) logits that the look before came to, for a model that is told.
    """

    run: Run
    tokens: Tensor
    whole: bool = False
    believed: Tensor | None = None


class Backend(Protocol):
    """What a model owes the worker."""

    spec: ModelSpec
    tokens: Tokens
    device: torch.device
    vocabulary: int

    def open(self, canvas: Canvas) -> Run:
        """Return a run over this canvas."""

    def noise(self, count: int) -> Tensor:
        """Return (count,) tokens that say nothing."""

    def look(self, looks: Sequence[Look]) -> list[Tensor]:
        """Return (slots, vocabulary) logits for each of `looks`, all in one pass where it can."""
        return [look.run.predict(look.tokens) for look in looks]

    def rows(self, look: Look) -> int:
        """Return about how many tokens a look puts through the model."""
        return len(look.tokens)


class MaskedBackend(Backend):
    """A masked model that sees the whole window: both sides of a hole in view.

    The first look at a canvas takes in all of it and keeps every token's keys and values; the next
    ones compute the rows of the slots and their neighbours alone (with a shift also the row before
    each, where a slot is read), against what is kept of the rest. That is an approximation, as the
    rest has seen older slots: `vicinity`, `refresh_every` and `refresh_changed` say how close it is.
    """

    def __init__(self, folder: Path, spec: ModelSpec, tokens: Tokens, model: nn.Module) -> None:
        self.folder = folder
        self.spec = spec
        self.tokens = tokens
        self.device = next(model.parameters()).device
        # transformers' classes are typed as little more than modules.
        self.model: Any = model
        cast(Any, model).config._attn_implementation = attention.NAME
        self.vocabulary: int = cast(Any, model).config.vocab_size
        self.refresh_every = REFRESH_EVERY
        self.refresh_changed = REFRESH_CHANGED
        self.vicinity = VICINITY
        self.memory = Memory()
        # Stands for a mask that has been made: the classes would build a causal one otherwise.
        self._no_mask = torch.zeros((1, 1, 1, 1), device=self.device)

    def open(self, canvas: Canvas) -> MaskedRun:
        return MaskedRun(self, canvas)

    def noise(self, count: int) -> Tensor:
        return torch.full((count,), self.spec.noise.id, device=self.device)

    def rows(self, look: Look) -> int:
        return cast(MaskedRun, look.run).rows(look)

    @torch.inference_mode()
    def look(self, looks: Sequence[Look]) -> list[Tensor]:
        runs = [cast(MaskedRun, look.run) for look in looks]
        asked = [run.asked(look) for run, look in zip(runs, looks, strict=True)]
        pack, ids, positions, read_at, start = list[Share](), [], [], [], 0
        for one in asked:
            rows = slice(start, start + len(one.ids))
            pack.append(Share(rows, None if one.all else one.at, one.kept))
            ids.append(one.ids)
            positions.append(one.at)
            read_at.append(one.read_at + start)
            start = rows.stop
        hidden = self.model.model(
            input_ids=torch.cat(ids)[None],
            position_ids=torch.cat(positions)[None],
            attention_mask=self._no_mask,
            use_cache=False,
            pack=pack,
        ).last_hidden_state[0]
        logits: Tensor = self.model.lm_head(hidden[torch.cat(read_at)])
        for run, look, one in zip(runs, looks, asked, strict=True):
            run.looked(look, one)
        return list(logits.split([len(one.read_at) for one in asked]))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The rows of one look.

    Attributes:
        ids: (rows,) tokens.
        at: (rows,) where they stand in the window.
        read_at: (slots,) the row where each slot is read.
        kept: where keys and values are or go to.
        all: whether these are all rows of the window.
    """

    ids: Tensor
    at: Tensor
    read_at: Tensor
    kept: Kept | None
    all: bool


class MaskedRun:
    """Looks at one canvas, and the keys and values kept of it. Counts the looks in `forwards`."""

    def __init__(self, backend: MaskedBackend, canvas: Canvas) -> None:
        self._backend = backend
        ids, slots = canvas.ids, canvas.slots
        if len(slots) and int(slots[0]) < backend.spec.shift:
            # The first slot is read where nothing stands. A line end says the least of what is to come.
            before = torch.tensor(backend.tokens.encode("\n"))
            ids, slots = torch.cat([before, ids]), slots + len(before)
        self._ids, self._slots = ids.to(backend.device), slots.to(backend.device)
        # With a shift a slot is read at the token before it, frozen or another slot.
        read = self._slots - backend.spec.shift
        self._read = read
        self._window = self._recomputed(backend.vicinity)
        self._read_in_window = torch.searchsorted(self._window, read)
        self._everywhere = torch.arange(len(self._ids), device=backend.device)
        self._kept = Kept()
        self._seen: Tensor | None = None
        self._looks = 0
        self.turns: Tensor | None = None
        self.forwards = 0

    def _recomputed(self, vicinity: int) -> Tensor:
        """Return (rows,) places that every look computes: slots, where they are read, and their neighbours."""
        places = torch.cat([self._slots, self._read])
        around = torch.arange(-vicinity, vicinity + 1, device=places.device)
        near = (places[:, None] + around).flatten().unique()
        return near[(near >= 0) & (near < len(self._ids))]

    def predict(self, tokens: Tensor) -> Tensor:
        """Return (slots, vocabulary) logits for each slot, given (slots,) tokens in them."""
        return self._backend.look([Look(self, tokens)])[0]

    def asked(self, look: Look) -> _Asked:
        """Return the rows that a look needs. Frozen tokens are written fresh, so none can have changed."""
        ids = self._ids.clone()
        ids[self._slots] = look.tokens.to(ids.device)
        if look.whole:
            return _Asked(ids, self._everywhere, self._read, None, all=True)
        if self._stale(look.tokens):
            return self._asked_anew(ids)
        return _Asked(ids[self._window], self._window, self._read_in_window, self._kept, all=False)

    def _asked_anew(self, ids: Tensor) -> _Asked:
        known = 0
        if self._seen is None:
            known = self._backend.memory.recall(self._ids, int(self._window[0]), self._kept)
        at = self._everywhere[known:]
        return _Asked(ids[known:], at, self._read - known, self._kept, all=not known)

    def rows(self, look: Look) -> int:
        """Return how many rows a look needs, at most."""
        return len(self._ids if look.whole or self._stale(look.tokens) else self._window)

    def looked(self, look: Look, asked: _Asked) -> None:
        """Take note of a look that was had."""
        self.forwards += 1
        if look.whole:
            return
        self._looks += 1
        if len(asked.ids) != len(self._window):
            self._seen, self._looks = look.tokens.clone(), 0
            self._backend.memory.remember(self._ids, int(self._window[0]), self._kept)

    def _stale(self, tokens: Tensor) -> bool:
        if self._seen is None or self._looks >= self._backend.refresh_every:
            return True
        changed = int((tokens != self._seen).sum())
        return changed > self._backend.refresh_changed * len(tokens)

"""Masked models that see blocks behind each other: within a block both ways, before it everything.

What is behind a hole is not seen where it stands. It is quoted in front of the window, as in the
suffix-first order of fill-in-the-middle models; where a checkpoint has tokens for that, between them.
Blocks are filled one after another, as a block was always trained behind whole ones: `turns` says in
which turn each slot may settle. A finished block never sees what comes after it, so the keys and
values that are kept of it are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from frostline.models import attention
from frostline.models.attention import Kept, Share
from frostline.models.backend import Backend, Canvas, Look
from frostline.models.spec import ModelSpec, Quote
from frostline.models.tokens import Tokens


class BlockBackend(Backend):
    """A model with block-causal attention and mask noise."""

    def __init__(self, folder: Path, spec: ModelSpec, tokens: Tokens, model: nn.Module) -> None:
        self.folder = folder
        self.spec = spec
        self.tokens = tokens
        self.device = next(model.parameters()).device
        self.model: Any = model
        cast(Any, model).config._attn_implementation = attention.NAME
        self.vocabulary: int = cast(Any, model).config.vocab_size
        # Stands for a mask that has been made: the classes would build a causal one otherwise.
        self.no_mask = torch.zeros((1, 1, 1, 1), device=self.device)

    def open(self, canvas: Canvas) -> BlockRun:
        return BlockRun(self, canvas)

    def noise(self, count: int) -> Tensor:
        return torch.full((count,), self.spec.noise.id, device=self.device)

    def rows(self, look: Look) -> int:
        return cast(BlockRun, look.run).rows(look)

    def look(self, looks: Sequence[Look]) -> list[Tensor]:
        for one in looks:
            if one.whole:
                cast(BlockRun, one.run).forget()
        return super().look(looks)


class BlockRun:
    """Looks at one canvas. Counts them in `forwards`.

    Attributes:
        turns: (slots,) ascending; a slot settles when all slots of earlier turns have.
    """

    def __init__(self, backend: BlockBackend, canvas: Canvas) -> None:
        self._backend = backend
        ids, slots = laid_out(canvas, backend.spec, backend.tokens)
        self._ids, self._slots = ids.to(backend.device), slots.to(backend.device)
        self._block = torch.arange(len(ids), device=backend.device) // backend.spec.block
        self.turns = self._block[self._slots]
        self._kept = Kept()
        self._seen: Tensor | None = None
        self._logits = torch.empty(0)
        self.forwards = 0

    def predict(self, tokens: Tensor) -> Tensor:
        """Return (slots, vocabulary) logits for each slot, given (slots,) tokens in them.

        Only what stands at or behind the first change is computed anew: nothing before it sees it.
        """
        ids = self._given(tokens)
        first = self._first_changed(ids)
        if first < len(ids):
            self._look(ids, first)
        self._seen = ids
        self.forwards += 1
        return self._logits

    def forget(self) -> None:
        """Have the next look compute all of the window."""
        self._seen = None

    def rows(self, look: Look) -> int:
        """Return how many rows a look needs."""
        ids = self._given(look.tokens)
        return len(ids) - self._first_changed(ids)

    def _given(self, tokens: Tensor) -> Tensor:
        # Frozen tokens are written fresh, so no look can have changed them.
        ids = self._ids.clone()
        ids[self._slots] = tokens.to(ids.device)
        return ids

    def _first_changed(self, ids: Tensor) -> int:
        """Return where the first block begins that holds something else than at the last look."""
        if self._seen is None:
            return 0
        changed = (ids != self._seen).nonzero()
        if not len(changed):
            return len(ids)
        block = self._backend.spec.block
        return int(changed[0]) // block * block

    @torch.inference_mode()
    def _look(self, ids: Tensor, first: int) -> None:
        backend, rows = self._backend, torch.arange(first, len(ids), device=ids.device)
        share = Share(
            slice(0, len(rows)),
            at=rows if first else None,
            kept=self._kept,
            seen=self._block[rows][:, None] >= self._block,
        )
        hidden = backend.model.model(
            input_ids=ids[None, first:],
            position_ids=rows[None],
            attention_mask=backend.no_mask,
            use_cache=False,
            pack=[share],
        ).last_hidden_state[0]
        anew = self._slots >= first
        logits: Tensor = backend.model.lm_head(hidden[self._slots[anew] - first])
        self._logits = logits if not first else torch.cat([self._logits[~anew], logits])


def laid_out(canvas: Canvas, spec: ModelSpec, tokens: Tokens) -> tuple[Tensor, Tensor]:
    """Return (length,) tokens and (slots,) places: what is behind first, then up to the last slot.

    Text between gaps is quoted, for the gap before it, and stands in its place, for the one behind it.
    As it counts twice, the quotation is cut at its end where all would be more than the model can see.
    """
    ids, slots = canvas.ids, canvas.slots
    quote = spec.quote or Quote()
    frozen = torch.ones(len(ids), dtype=torch.bool)
    frozen[slots] = False
    first = int(slots[0])
    head = 1 if first and int(ids[0]) == spec.begin_of_file else 0
    behind = ids[first:][frozen[first:]]
    plain = not (quote.suffix or quote.prefix or quote.middle)
    between = tokens.encode("\n\n") if plain and len(behind) else list(quote.prefix)
    marks = len(quote.suffix) + len(between) + len(quote.middle)
    behind = behind[: max(spec.max_context - marks - int(slots[-1]) - 1, 0)]
    before = [
        *ids[:head].tolist(),
        *quote.suffix,
        *behind.tolist(),
        *between,
        *ids[head:first].tolist(),
        *quote.middle,
    ]
    window = torch.cat([torch.tensor(before, dtype=torch.long), ids[first : int(slots[-1]) + 1]])
    return window, slots - first + len(before)

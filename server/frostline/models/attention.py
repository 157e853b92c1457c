"""Attention over several windows in one pass, each with keys and values that it keeps.

A pass takes rows: tokens of one window or of many, packed behind each other without padding. All
that a layer does to single rows runs once over the whole pack; attention runs window by window, the
rows of each against all keys and values of its own. Rows that are not in the pack keep the keys and
values they had: the dual cache of Fast-dLLM (prefix and suffix kept, the hole's rows written in
place), for any set of rows.

It is a transformers attention function, so every class of theirs that takes one can run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface

NAME = "frostline_packed"


@dataclass(eq=False, slots=True)
class Kept:
    """Keys and values of one window, a pair for each layer, each (1, heads, length, head size)."""

    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Memory that they take."""
        return sum(one.numel() * one.element_size() for one in (*self.keys, *self.values))

    def clear(self) -> None:
        """Forget all of them."""
        self.keys.clear()
        self.values.clear()


@dataclass(frozen=True, slots=True)
class Share:
    """One window's rows in a pack.

    Attributes:
        rows: where they lie in the pack.
        at: (rows,) where they lie in their window; None for the whole window.
        kept: where its keys and values are, or go to; None keeps nothing.
        seen: (rows, window) booleans, what each row attends to; None for everything.
    """

    rows: slice
    at: Tensor | None = None
    kept: Kept | None = None
    seen: Tensor | None = None


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    pack: Sequence[Share],
    **_: Any,
) -> tuple[Tensor, None]:
    """Return what each row gathers, (1, rows, heads, head size), for (1, heads, rows, head size)."""
    layer = int(module.layer_idx)  # type: ignore[arg-type]
    gathered = []
    for share in pack:
        keys, values = _all_of(share, layer, key[:, :, share.rows], value[:, :, share.rows])
        gathered.append(
            F.scaled_dot_product_attention(
                query[:, :, share.rows],
                keys,
                values,
                attn_mask=share.seen,
                scale=scaling,
                enable_gqa=keys.shape[1] != query.shape[1],
            )
        )
    together = gathered[0] if len(gathered) == 1 else torch.cat(gathered, 2)
    return together.transpose(1, 2), None


def _all_of(share: Share, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Return the keys and values of a share's whole window, the new ones among them."""
    kept = share.kept
    if kept is None:
        return key, value
    if share.at is None:
        # The first pass of a run over its window, or one that begins anew.
        if layer == 0:
            kept.clear()
        kept.keys.append(key.contiguous())
        kept.values.append(value.contiguous())
    else:
        kept.keys[layer].index_copy_(2, share.at, key)
        kept.values[layer].index_copy_(2, share.at, value)
    return kept.keys[layer], kept.values[layer]


AttentionInterface.register(NAME, attend)

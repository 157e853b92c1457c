"""Keys and values of prefixes that were looked at, for the next request at the same place.

Somebody who types asks again and again with nearly the same text before the hole. Where the tokens
before it begin with those of an earlier window, their keys and values are taken over and only the
rest is computed (prefix reuse by exact match, as in the servers of autoregressive models). For a
model that sees both sides this is an approximation: what is kept had seen the hole of that time.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor

from frostline.models.attention import Kept

# Less than this is computed faster than it is looked up and copied.
LEAST = 64
BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class _Prefix:
    ids: Tensor
    kept: Kept
    bytes: int


class Memory:
    """The prefixes that were used last, within `limit` bytes."""

    def __init__(self, limit: int = BYTES) -> None:
        self.limit = limit
        self._prefixes: OrderedDict[int, _Prefix] = OrderedDict()
        self._count = 0

    @property
    def bytes(self) -> int:
        """Memory that is held."""
        return sum(one.bytes for one in self._prefixes.values())

    def remember(self, ids: Tensor, until: int, kept: Kept) -> None:
        """Keep what `kept` has of the first `until` tokens of a window, and let go of the oldest."""
        if until < LEAST:
            return
        views = Kept(
            [one[:, :, :until] for one in kept.keys], [one[:, :, :until] for one in kept.values]
        )
        # A view holds all of its tensor, so all of that is counted.
        held = _Prefix(ids[:until].clone(), views, kept.bytes)
        for number, one in list(self._prefixes.items()):
            if _common(one.ids, held.ids) == len(one.ids):
                del self._prefixes[number]
        self._prefixes[self._count] = held
        self._count += 1
        while self._prefixes and self.bytes > self.limit:
            self._prefixes.popitem(last=False)

    def recall(self, ids: Tensor, until: int, kept: Kept) -> int:
        """Fill `kept` with what is known of the first tokens of a window, room made for all of it.

        Args:
            ids: (length,) the window.
            until: how many of its tokens may be taken over at most.

        Returns:
            How many were; 0 leaves `kept` as it is.
        """
        best = max(
            self._prefixes,
            key=lambda number: _common(self._prefixes[number].ids, ids),
            default=None,
        )
        if best is None:
            return 0
        self._prefixes.move_to_end(best)
        known = min(_common(self._prefixes[best].ids, ids), until)
        if known < LEAST:
            return 0
        kept.clear()
        for source, target in (
            (self._prefixes[best].kept.keys, kept.keys),
            (self._prefixes[best].kept.values, kept.values),
        ):
            for one in source:
                whole = torch.empty(
                    (*one.shape[:2], len(ids), one.shape[3]), dtype=one.dtype, device=one.device
                )
                whole[:, :, :known] = one[:, :, :known]
                target.append(whole)
        return known


def _common(one: Tensor, other: Tensor) -> int:
    """Return how many first tokens two windows share."""
    length = min(len(one), len(other))
    differ = (one[:length] != other[:length]).nonzero()
    return int(differ[0]) if len(differ) else length

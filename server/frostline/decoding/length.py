"""How long a hole's text becomes: end padding, or slots that divide and go.

End padding. A gap gets more slots than its text may need, and the model says where the text ends: from its first
pad on a gap holds nothing but pads, which are no text. Pads are what a model is surest of, so left
to themselves they settle first and cut the text short before any of it is known; therefore a pad
settles only once everything left of it has.

Expand and delete (DreamOn). A gap starts short; a slot that settles as the expand token becomes two
open ones, one that settles as the delete token goes, and with it what is open behind it in its gap.
Left alone these can take turns for ever, so a gap that has deleted never expands again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def leftmost_open(open: Tensor, gap: Tensor) -> Tensor:
    """Return (slots,) booleans: the first open slot of each gap. `gap` is (slots,) and ascending."""
    first = torch.zeros_like(open)
    seen: set[int] = set()
    for slot in open.nonzero().flatten().tolist():
        if (number := int(gap[slot])) not in seen:
            seen.add(number)
            first[slot] = True
    return first


def near(first: Tensor, gap: Tensor, reach: int) -> Tensor:
    """Return (slots,) booleans: the `reach` slots of each gap from its `first` open one on."""
    close = torch.zeros_like(first)
    for slot in first.nonzero().flatten().tolist():
        close[slot : slot + reach] = gap[slot : slot + reach] == gap[slot]
    return close


def may_end(tokens: Tensor, open: Tensor, gap: Tensor, pad: int) -> Tensor:
    """Return (slots,) booleans: where a pad is possible, with no settled text behind it in its gap."""
    text = ~open & (tokens != pad)
    allowed = torch.ones_like(open)
    for number in gap.unique().tolist():
        here = (gap == number).nonzero().flatten()
        settled = text[here].nonzero().flatten()
        if len(settled):
            allowed[here[: int(settled[-1])]] = False
    return allowed


def padded_out(tokens: Tensor, open: Tensor, gap: Tensor, pad: int) -> tuple[Tensor, Tensor]:
    """Return tokens and open with everything behind a settled pad settled as pad too."""
    tokens, open = tokens.clone(), open.clone()
    for number in gap.unique().tolist():
        here = (gap == number).nonzero().flatten()
        ends = (~open[here] & (tokens[here] == pad)).nonzero().flatten()
        if len(ends):
            behind = here[int(ends[0]) :]
            tokens[behind] = pad
            open[behind] = False
    return tokens, open


@dataclass(frozen=True, slots=True)
class Resized:
    """A canvas of another length; both of shape (new slots,).

    Attributes:
        source: the slot that each comes from, ascending; of one that divided there are two.
        fresh: which are open because they come of a division.
    """

    source: Tensor
    fresh: Tensor


def resized(tokens: Tensor, open: Tensor, gap: Tensor, expand: int, delete: int) -> Resized | None:
    """Return what (slots,) become once settled expand and delete tokens are carried out.

    None where there are none.
    """
    grows, goes = ~open & (tokens == expand), ~open & (tokens == delete)
    if not (grows | goes).any():
        return None
    for number in gap[goes].unique().tolist():
        here = gap == number
        behind = torch.arange(len(gap), device=gap.device) > int((goes & here).nonzero()[0])
        goes = goes | (here & behind & open)
    count = torch.where(goes, 0, torch.where(grows, 2, 1))
    source = torch.repeat_interleave(torch.arange(len(tokens), device=tokens.device), count)
    return Resized(source, grows[source])

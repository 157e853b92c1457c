"""How long a hole's text becomes: end padding.

A gap gets more slots than its text may need, and the model says where the text ends: from its first
pad on a gap holds nothing but pads, which are no text. Pads are what a model is surest of, so left
to themselves they settle first and cut the text short before any of it is known; therefore a pad
settles only once everything left of it has.
"""

from __future__ import annotations

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

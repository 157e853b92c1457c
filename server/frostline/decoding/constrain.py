"""What a slot may become, as masks on logits, and when it may settle.

Special tokens are never text. A gap inside a line never grows a line end. A gap that continues a
word has to spell its beginning first, byte by byte, whatever tokens that takes (the completion
prefix problem of FIM models, solved on bytes as in FIM-SE, arXiv 2405.17103).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from frostline.decoding.length import leftmost_open, may_end, near

IMPOSSIBLE = float("-inf")


@dataclass(frozen=True, slots=True)
class Rules:
    """What is known about the slots before the first step.

    Attributes:
        gap: (slots,) number of each slot's gap, ascending.
        banned: (vocabulary,) tokens that are never text.
        line_ends: (vocabulary,) tokens with a line end in them.
        multiline: for each gap, whether it may hold line ends.
        required: for each gap, the bytes that it has to begin with.
        token_bytes: what each token of the vocabulary spells.
        pad: the token that fills a gap behind its text; None for models without one.
        reach: with a pad, how many slots from its first open one a gap settles in. Text that settled
            far behind it would rule out every end before it, and the gap would always fill up.
    """

    gap: Tensor
    banned: Tensor
    line_ends: Tensor
    multiline: Sequence[bool]
    required: Sequence[bytes]
    token_bytes: Sequence[bytes]
    pad: int | None = None
    reach: int = 4

    def apply(self, logits: Tensor, tokens: Tensor, open: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits with what cannot be made impossible, and which open slots may settle.

        Args:
            logits: (slots, vocabulary).
            tokens: (slots,) present tokens; only those of settled slots are read.
            open: (slots,).
        """
        logits = logits.masked_fill(self.banned, IMPOSSIBLE)
        single = [number for number, many in enumerate(self.multiline) if not many]
        if single:
            inside = torch.isin(self.gap, torch.tensor(single, device=logits.device))
            logits = torch.where(inside[:, None] & self.line_ends, IMPOSSIBLE, logits)
        ready = open.clone()
        if self.pad is not None:
            allowed = may_end(tokens, open, self.gap, self.pad)
            logits[~allowed, self.pad] = IMPOSSIBLE
        for number, required in enumerate(self.required):
            if required:
                self._require(number, required, logits, tokens, open, ready)
        if self.pad is not None:
            # A pad ends the text, so it waits until all before it is known.
            ends = logits.argmax(-1) == self.pad
            first = leftmost_open(open, self.gap)
            ready = ready & near(first, self.gap, self.reach) & (~ends | first)
        return logits, ready

    def _require(
        self,
        number: int,
        required: bytes,
        logits: Tensor,
        tokens: Tensor,
        open: Tensor,
        ready: Tensor,
    ) -> None:
        slots = (self.gap == number).nonzero().flatten().tolist()
        left = required
        for place, slot in enumerate(slots):
            if not left:
                return
            if open[slot]:
                fits = self._fitting(left, last=place + 1 == len(slots)).to(logits.device)
                logits[slot] = logits[slot].masked_fill(~fits, IMPOSSIBLE)
                ready[slots] = False
                ready[slot] = True
                return
            left = left[len(self.token_bytes[int(tokens[slot])]) :]

    def _fitting(self, left: bytes, *, last: bool) -> Tensor:
        """Return (vocabulary,) booleans: tokens that spell on from `left`, or a beginning of it."""
        fits = [
            bool(spelled) and (spelled.startswith(left) or (not last and left.startswith(spelled)))
            for spelled in self.token_bytes
        ]
        if not any(fits):
            fits = [bool(spelled) and left.startswith(spelled) for spelled in self.token_bytes]
        return torch.tensor(fits) & ~self.banned.cpu()

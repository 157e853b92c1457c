"""What a text that is written from left to right may go on with, as masks on logits.

`constrain.Rules` say the same for slots that settle in any order. Here all that stands left of a slot
is known, and the text is over where the model says so, in whatever way it says it: by one of its
special tokens, or by going on with what stands behind the gap, such as the end of its line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from frostline.decoding.constrain import IMPOSSIBLE


@dataclass(frozen=True, slots=True)
class Continuing:
    """What the slots of one stretch may become.

    Attributes:
        never: (vocabulary,) booleans: tokens that are no text here.
        ends: ids that say that the text is over.
        end: the one of them that stands for all.
        spelling: the bytes of each id.
        required: what the stretch has to begin with.
        before: the token before the first slot in its gap, None where there is none.
        shallow: (vocabulary,) booleans: tokens that end in a line begun with too little indentation,
            behind which only a line end may stand; None for none.
        begins_line: (vocabulary,) booleans: tokens that begin with a line end.
        slots: how many there are.
    """

    never: Tensor
    ends: Tensor
    end: int
    spelling: Sequence[bytes]
    slots: int
    required: bytes = b""
    before: int | None = None
    shallow: Tensor | None = None
    begins_line: Tensor | None = None

    def __call__(self, logits: Tensor, tokens: Tensor, first: int) -> Tensor:
        """Return the logits with what slots must not become made impossible.

        Args:
            logits: (count, vocabulary) of the slots from `first` on.
            tokens: (slots,) of which only what stands left of a slot is read for it.
        """
        over = logits[:, self.ends].amax(-1)
        logits = logits.masked_fill(self.never, IMPOSSIBLE)
        logits[:, self.end] = over
        if self.shallow is not None:
            self._indent(logits, tokens, first, self.shallow)
        if self.required:
            self._begin(logits, tokens, first)
        return logits

    def _indent(self, logits: Tensor, tokens: Tensor, first: int, shallow: Tensor) -> None:
        blank = shallow if self.begins_line is None else shallow & ~self.begins_line
        for row in range(len(logits)):
            slot = first + row
            left = int(tokens[slot - 1]) if slot else self.before
            if left is not None and bool(shallow[left]):
                goes_on = (
                    torch.zeros_like(shallow) if self.begins_line is None else self.begins_line
                )
                goes_on = goes_on.clone()
                goes_on[self.end] = True
                logits[row].masked_fill_(~goes_on, IMPOSSIBLE)
            elif slot == self.slots - 1:
                logits[row].masked_fill_(blank, IMPOSSIBLE)

    def _begin(self, logits: Tensor, tokens: Tensor, first: int) -> None:
        """Leave only what spells on in the rows that have not spelled what is required."""
        for row in range(len(logits)):
            spelled = b"".join(self.spelling[one] for one in tokens[: first + row].tolist())
            if len(spelled) >= len(self.required) or not self.required.startswith(spelled):
                # Spelled, or a guess that does not spell it and so will not stand.
                break
            left = self.required[len(spelled) :]
            fits = [
                bool(one) and (one.startswith(left) or left.startswith(one))
                for one in self.spelling
            ]
            logits[row].masked_fill_(~torch.tensor(fits, device=logits.device), IMPOSSIBLE)

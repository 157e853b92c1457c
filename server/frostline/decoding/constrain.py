"""What a slot may become, as masks on logits, and when it may settle.

Special tokens are never text. A gap inside a line never grows a line end. A gap that continues a
word has to spell its beginning first, byte by byte, whatever tokens that takes (the completion
prefix problem of FIM models, solved on bytes as in FIM-SE, arXiv 2405.17103).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import takewhile

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
        outside: for each gap, (vocabulary,) booleans: tokens that would leave what is around it, such
            as the quote of its string; None for none.
        shallow: for each gap, (vocabulary,) booleans: tokens that end in a line begun with less than
            the gap's indentation; None for none. Such a line has to be blank: it ends at once.
        begins_line: (vocabulary,) tokens that begin with a line end.
        pad: the token that fills a gap behind its text; None for models without one.
        reach: with a pad, how many slots from its first open one a gap settles in. Text that settled
            far behind it would rule out every end before it, and the gap would always fill up.
        turns: (slots,) when each slot may settle: those of a turn wait for all earlier ones; None for
            all at once.
    """

    gap: Tensor
    banned: Tensor
    line_ends: Tensor
    multiline: Sequence[bool]
    required: Sequence[bytes]
    token_bytes: Sequence[bytes]
    outside: Sequence[Tensor | None] = ()
    shallow: Sequence[Tensor | None] = ()
    begins_line: Tensor | None = None
    pad: int | None = None
    reach: int = 4
    turns: Tensor | None = None

    def without_beginnings(self) -> Rules:
        """Return the same rules for gaps that have spelled what they have to begin with."""
        return replace(self, required=[b""] * len(self.required))

    def possible(self, logits: Tensor, tokens: Tensor, open: Tensor) -> Tensor:
        """Return the logits with what an open slot must not become made impossible.

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
        for number, outside in enumerate(self.outside):
            if outside is not None:
                here = (self.gap == number)[:, None]
                logits = torch.where(here & outside, IMPOSSIBLE, logits)
        for number, shallow in enumerate(self.shallow):
            if shallow is not None:
                logits = self._indented(logits, tokens, open, number, shallow)
        if self.pad is not None:
            allowed = may_end(tokens, open, self.gap, self.pad)
            logits[~allowed, self.pad] = IMPOSSIBLE
        for slot, left, slots_left in self._spelling(tokens, open):
            some = torch.isfinite(logits[slot])
            logits[slot] = logits[slot].masked_fill(
                ~self._fitting(left, slots_left, some), IMPOSSIBLE
            )
        return logits

    def _indented(
        self, logits: Tensor, tokens: Tensor, open: Tensor, number: int, shallow: Tensor
    ) -> Tensor:
        """Return the logits with every line of a gap that is not blank indented."""
        here = (self.gap == number).nonzero().flatten()
        begins = self.begins_line
        assert begins is not None
        ends = (
            begins if self.pad is None else begins.clone().index_fill_(0, _at(self.pad, begins), 1)
        )
        followed = torch.zeros_like(here, dtype=torch.bool)
        followed[:-1] = open[here[1:]] | ends[tokens[here[1:]]]
        logits[here] = torch.where(~followed[:, None] & shallow, IMPOSSIBLE, logits[here])
        blank = here[1:][~open[here[:-1]] & shallow[tokens[here[:-1]]]]
        logits[blank] = torch.where(ends, logits[blank], IMPOSSIBLE)
        return logits

    def ready(self, proposed: Tensor, tokens: Tensor, open: Tensor, count: int) -> Tensor:
        """Return (slots,) booleans: the open slots that may settle as proposed.

        Each gap with an open slot has one that may, so a loop over this ends.

        Args:
            count: how many have to settle now; the reach grows with it, and where it asks for all,
                nothing waits but what has a beginning to spell.
        """
        ready = open.clone()
        if self.pad is not None and count < int(open.sum()):
            # A pad ends the text, so it waits until all before it is known.
            first = leftmost_open(open, self.gap)
            close = near(first, self.gap, max(self.reach, count))
            ready = open & close & ((proposed != self.pad) | first)
        for slot, _, _ in self._spelling(tokens, open):
            ready[self.gap == self.gap[slot]] = False
            ready[slot] = True
        if self.turns is not None:
            ready = ready & (self.turns == self.turns[open].min())
        return ready

    def _spelling(self, tokens: Tensor, open: Tensor) -> Iterator[tuple[int, bytes, int]]:
        """Yield, for each gap that has not spelled its beginning, the slot whose turn it is.

        With it what is left to spell, and how many open slots in a row there are for that.
        """
        for number, left in enumerate(self.required):
            slots = (self.gap == number).nonzero().flatten().tolist() if left else []
            for place, slot in enumerate(slots):
                if open[slot]:
                    row = takewhile(lambda one: bool(open[one]), slots[place:])
                    yield slot, left, len(list(row))
                    break
                left = left[len(self.token_bytes[int(tokens[slot])]) :]
                if not left:
                    break

    def _fitting(self, left: bytes, slots_left: int, some: Tensor) -> Tensor:
        """Return (vocabulary,) booleans: tokens out of `some` that spell on from `left`.

        One that spells only a beginning of it has to leave slots enough for the rest. Where there
        are too few from the start, any beginning will do: the gap stays unfinished.
        """
        spells = [
            spelled if fine else b""
            for spelled, fine in zip(self.token_bytes, some.tolist(), strict=True)
        ]
        needed = _slots_needed(left, {spelled for spelled in spells if spelled and spelled in left})
        begins = [bool(spelled) and left.startswith(spelled) for spelled in spells]
        fits = [
            bool(spelled)
            and (spelled.startswith(left) or (begin and needed[len(spelled)] < slots_left))
            for spelled, begin in zip(spells, begins, strict=True)
        ]
        return torch.tensor(fits if any(fits) else begins, device=some.device)


def _slots_needed(text: bytes, pieces: Set[bytes]) -> list[float]:
    """Return for each place of `text` how many of `pieces` spell the rest of it; endless if none do."""
    needed = [math.inf] * len(text) + [0.0]
    for place in reversed(range(len(text))):
        for end in range(place + 1, len(text) + 1):
            if text[place:end] in pieces:
                needed[place] = min(needed[place], 1 + needed[end])
    return needed


def _at(place: int, like: Tensor) -> Tensor:
    return torch.tensor([place], device=like.device)

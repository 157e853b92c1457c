"""What the model is asked in training.

Three questions, answered by one set of weights that reads token i off its output at i - 1:

- holes: text with holes cut where an editor would, each masked whole or in part, often with more
  slots than text (the rest is pad);
- scattered: any token may be masked;
- left to right: plain, or with the middle last (fill in the middle).

Text around a hole and text in it are encoded apart, as the worker does: tokens never straddle a
hole's edge, so " name" cut behind its blank is a blank and "name", in training as in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from frostline.models.tokens import Tokens
from frostline.train.holes import Rng, cut

END, MASK, PAD, BEGIN, PREFIX, SUFFIX, MIDDLE = range(7)
SPECIALS = 8
ROOMS = (16, 48)
# How far from its first open slot a hole with room to spare settles in use (frostline.decoding).
REACH = 4

Kind = Literal["holes", "scattered", "left"]

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Shares and rates of the objective.

    Attributes:
        hole_share: least and most share of a window that lies in holes.
        whole: share of holes that are masked whole.
        begun: share of holes of which a beginning is known, as decoding leaves them; of all others,
            each token is masked at a rate between least and 1.
        padded: share of holes with more slots than text.
        later_pads: weight of a pad behind the first; where the text ends is the question, what
            follows is none.
        middle: share of left-to-right windows with the middle last.
        scattered: least and most share of tokens masked anywhere.
        by_rate: weigh answers by one over the share that is masked, which makes the loss a bound on
            the likelihood (MDLM); off, and not compared yet (LOG.md).
    """

    hole_share: tuple[float, float] = (0.15, 0.5)
    whole: float = 0.35
    begun: float = 0.4
    least: float = 0.15
    padded: float = 0.7
    later_pads: float = 0.2
    middle: float = 0.5
    scattered: tuple[float, float] = (0.2, 0.8)
    by_rate: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """A question with its answers.

    Attributes:
        ids: (rows, window) tokens as the model sees them.
        read_at: (answers,) places in the flattened output.
        answers: (answers,) tokens.
        weights: (answers,) of each in the loss.
        causal: whether a token sees only those before it.
    """

    kind: Kind
    ids: Tensor
    read_at: Tensor
    answers: Tensor
    weights: Tensor
    causal: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One window: tokens as seen, tokens as they are, and the weight of each answer."""

    seen: Ids
    true: Ids
    weight: NDArray[np.float32]


class Questions:
    """Draws batches from a shard; the same generator gives the same batch."""

    def __init__(self, ids: NDArray[np.uint16], tokens: Tokens, recipe: Recipe) -> None:
        self._ids = ids
        self._tokens = tokens
        self._recipe = recipe

    def batch(self, kind: Kind, rows: int, window: int, rng: Rng) -> Batch:
        """Return one batch of this kind."""
        ask = {"holes": self._holes, "scattered": self._scattered, "left": self._left}[kind]
        drawn = [ask(window, rng) for _ in range(rows)]
        weight = np.stack([row.weight for row in drawn])
        # Nothing stands before the first token to read it from.
        weight[:, 0] = 0.0
        true = np.stack([row.true for row in drawn])
        where = np.flatnonzero(weight)
        return Batch(
            kind,
            torch.from_numpy(np.stack([row.seen for row in drawn])),
            torch.from_numpy(where - 1),
            torch.from_numpy(true.ravel()[where]),
            torch.from_numpy(weight.ravel()[where]),
            causal=kind == "left",
        )

    def _window(self, size: int, rng: Rng) -> Ids:
        """Return tokens of one file where there is one that long, from its begin on if it is near."""
        start = int(rng.integers(max(len(self._ids) - size, 1)))
        ids = np.asarray(self._ids[start : start + size], dtype=np.int64)
        begins = np.flatnonzero(ids == BEGIN)
        if len(begins) and begins[-1] and start + begins[-1] + size <= len(self._ids):
            start += int(begins[-1])
            ids = np.asarray(self._ids[start : start + size], dtype=np.int64)
        return ids

    def _holes(self, window: int, rng: Rng) -> Row:
        head, text = self._text(window, rng)
        least, most = self._recipe.hole_share
        true: list[int] = list(head)
        seen: list[int] = list(head)
        weight: list[float] = [0.0] * len(head)
        at = 0
        for hole in cut(text, float(rng.uniform(least, most)), rng):
            frozen = self._tokens.encode(text[at : hole.start])
            slots = self._tokens.encode(text[hole.start : hole.end])
            pads = self._room(len(slots), rng) - len(slots)
            # Pads settle last in use, and all at once: none is ever seen beside an open slot.
            masked = self._masked(len(slots), rng)
            each = 1 / float(masked.mean()) if self._recipe.by_rate and masked.any() else 1.0
            masked = np.append(masked, np.ones(pads, dtype=np.bool_))
            slots_weight = [each] * len(slots) + [1.0, *[self._recipe.later_pads] * pads][:pads]
            slots += [PAD] * pads
            true += frozen + slots
            seen += frozen + [
                MASK if hide else one for one, hide in zip(slots, masked, strict=True)
            ]
            weight += [0.0] * len(frozen)
            weight += [w if hide else 0.0 for w, hide in zip(slots_weight, masked, strict=True)]
            at = hole.end
        rest = self._tokens.encode(text[at:])
        return _row(seen + rest, true + rest, weight + [0.0] * len(rest), window)

    def _masked(self, slots: int, rng: Rng) -> NDArray[np.bool_]:
        kind = rng.random()
        masked = np.ones(slots, dtype=np.bool_)
        if kind < self._recipe.whole:
            return masked
        if kind < self._recipe.whole + self._recipe.begun:
            # Up to the end of the text: there the only question is whether it ends.
            first = int(rng.integers(slots + 1))
            masked[:first] = False
            near = masked[first + 1 : first + REACH]
            near[:] = rng.random(len(near)) < 0.75
            return masked
        return rng.random(slots) < rng.uniform(self._recipe.least, 1.0)

    def _room(self, text: int, rng: Rng) -> int:
        """Return the slots of a hole with so many tokens of text."""
        if rng.random() >= self._recipe.padded:
            return max(text, 1)
        if rng.random() < 0.5:
            # The rooms that the worker gives: for a line, for a block.
            return next((room for room in ROOMS if text < room), text)
        return text + int(rng.integers(1, 13))

    def _text(self, window: int, rng: Rng) -> tuple[list[int], str]:
        """Return the begin token, if the window has it, and the text of a window."""
        ids = self._window(window, rng).tolist()
        head = [BEGIN] if ids[0] == BEGIN else []
        # A window may begin or end in the middle of a character, and may reach into the next file.
        return head, self._tokens.spell(ids).decode("utf-8", errors="ignore")

    def _scattered(self, window: int, rng: Rng) -> Row:
        true = self._window(window, rng)
        share = rng.uniform(*self._recipe.scattered)
        hidden = (rng.random(window) < share) & (true >= SPECIALS)
        weight = hidden.astype(np.float32) / (share if self._recipe.by_rate else 1.0)
        return Row(np.where(hidden, MASK, true), true, weight.astype(np.float32))

    def _left(self, window: int, rng: Rng) -> Row:
        if rng.random() >= self._recipe.middle:
            return self._left_plain(window, rng)
        head, text = self._text(window + 4, rng)
        # Not near the end, where the middle's own room would cut it off.
        holes = [hole for hole in cut(text, 0.01, rng) if hole.end < 0.8 * len(text)]
        if not holes:
            return self._left_plain(window, rng)
        encode = self._tokens.encode
        hole = holes[0]
        before, middle = encode(text[: hole.start]), encode(text[hole.start : hole.end])
        after = encode(text[hole.end :])
        spare = window - len(head) - len(before) - len(middle) - 4
        row = [*head, PREFIX, *before, SUFFIX, *after[: max(spare, 0)], MIDDLE, *middle, END]
        weight = [1.0 if one >= SPECIALS or one == END else 0.0 for one in row]
        return _row(row, row, weight, window)

    def _left_plain(self, window: int, rng: Rng) -> Row:
        true = self._window(window, rng)
        return Row(true, true, (true >= SPECIALS).astype(np.float32))


def _row(seen: list[int], true: list[int], weight: list[float], window: int) -> Row:
    """Return the row cut to the window, or filled up with ends that count for nothing."""
    short = max(window - len(seen), 0)
    return Row(
        np.asarray(seen[:window] + [END] * short, dtype=np.int64),
        np.asarray(true[:window] + [END] * short, dtype=np.int64),
        np.asarray(weight[:window] + [0.0] * short, dtype=np.float32),
    )

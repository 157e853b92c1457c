"""Autoregressive decoding as refinement of a canvas: Jacobi iteration, from any start.

    guess something for every slot
    until every slot is settled:
        one pass: what would stand in each slot, given the guesses left of it?
        the slots from the first open one up to the first wrong guess settle
        guess again: by what the pass said, or by n-grams of a text at hand

What settles is what one-token-a-step decoding writes, as a slot settles only when all left of it
has: the guess decides how many slots that is in a pass, at least one, and never what stands in
them. (Jacobi decoding: Song et al. 2021, Santilli et al. 2023. Guesses by n-grams of the context:
prompt lookup decoding, Saxena 2023.) `greedy` is the plain way, for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from frostline.decoding.loop import NothingFits, Step

# Slots that are looked at in one pass. More cost time where a processor has no width to spare.
AHEAD = 8


class Score(Protocol):
    """The model: logits of slots, given what stands left of each."""

    def __call__(self, tokens: Tensor, settled: int, count: int, /) -> Tensor:
        """Return (count, vocabulary) logits for the slots from `settled` on, given (slots,) tokens."""


# (count, vocabulary) logits, (slots,) tokens and the first slot's number -> logits without what
# those slots must not become. May depend on tokens left of a slot only.
Possible = Callable[[Tensor, Tensor, int], Tensor]
# The tokens that are settled -> guesses for the next ones, none where there is nothing to go by.
Guess = Callable[[Sequence[int]], Sequence[int]]


def nothing(_: Sequence[int]) -> Sequence[int]:
    """Guess nothing: what the last pass said is the next guess."""
    return ()


class NGrams:
    """Guesses by what followed the same tokens in texts at hand, the longest match first.

    Args:
        texts: tokens; on a tie the earlier text counts, and in it the later place.
        before: tokens before the first slot, which a match may reach into.
        longest, least: tokens of a match.
    """

    def __init__(
        self,
        texts: Sequence[Sequence[int]],
        before: Sequence[int] = (),
        *,
        longest: int = 4,
        least: int = 2,
    ) -> None:
        self._texts = texts
        self._before = tuple(before[-longest:])
        self._lengths = range(longest, least - 1, -1)
        self._found: dict[tuple[int, ...], tuple[int, int]] = {}
        for number, text in reversed(list(enumerate(texts))):
            for length in self._lengths:
                for end in range(length, len(text)):
                    self._found[tuple(text[end - length : end])] = number, end

    def __call__(self, settled: Sequence[int]) -> Sequence[int]:
        written = (*self._before, *settled)
        for length in self._lengths:
            place = self._found.get(written[-length:]) if len(written) >= length else None
            if place is not None:
                number, end = place
                return self._texts[number][end : end + AHEAD]
        return ()


@torch.inference_mode()
def jacobi(
    tokens: Tensor,
    score: Score,
    possible: Possible,
    end: int,
    guess: Guess = nothing,
    *,
    ahead: int = AHEAD,
    blind: int = AHEAD,
    temperature: float = 0.0,
    seed: int = 0,
) -> Iterator[Step]:
    """Yield the canvas after each pass until every slot is settled.

    Args:
        tokens: (slots,) what to start from.
        end: the token that says the text is over; it stands in every slot behind.
        ahead: slots to look at in one pass, at most.
        blind: the same for a pass with no guess but what the last one said; 1 is plain decoding.
        temperature: above 0 each slot has its own random numbers from `seed`, so that here too the
            text does not depend on the guesses.

    Raises:
        NothingFits: there is a slot that no token may stand in.
    """
    tokens, slots, settled, step = tokens.clone(), len(tokens), 0, 0
    confidence = torch.zeros(slots, device=tokens.device)
    guessed = guess(())
    while settled < slots:
        tokens = _with(tokens, settled, guessed)
        count = min(ahead if len(guessed) else blind, slots - settled)
        looked = slice(settled, settled + count)
        chosen, sure = _chosen(score, possible, tokens, looked, temperature, seed)
        wrong = (chosen != tokens[looked]).nonzero()
        certain = min(int(wrong[0]) + 1, count) if len(wrong) else count
        _check(sure[:certain])
        tokens[looked], confidence[looked] = chosen, sure
        ended = (chosen[:certain] == end).nonzero()
        settled, step = settled + certain, step + 1
        if len(ended):
            over = looked.start + int(ended[0])
            tokens[over:], confidence[over:], settled = end, sure[ended[0]], slots
        else:
            guessed = guess(tokens[:settled].tolist())
        yield _step(step, tokens, confidence, settled, end)


@torch.inference_mode()
def greedy(
    slots: int,
    score: Score,
    possible: Possible,
    end: int,
    *,
    device: torch.device | None = None,
    temperature: float = 0.0,
    seed: int = 0,
) -> Iterator[Step]:
    """Yield the canvas after each token, written one by one: what `jacobi` has to come to."""
    tokens = torch.full((slots,), end, device=device)
    confidence = torch.zeros(slots, device=device)
    for slot in range(slots):
        here = slice(slot, slot + 1)
        tokens[here], sure = _chosen(score, possible, tokens, here, temperature, seed)
        _check(sure)
        confidence[here] = sure
        over = int(tokens[slot]) == end
        yield _step(slot + 1, tokens, confidence, slots if over else slot + 1, end)
        if over:
            return


def _chosen(
    score: Score,
    possible: Possible,
    tokens: Tensor,
    looked: slice,
    temperature: float,
    seed: int,
) -> tuple[Tensor, Tensor]:
    """Return (count,) tokens that a pass chooses for slots, and their probabilities."""
    logits = score(tokens, looked.start, looked.stop - looked.start).float()
    log_p = torch.log_softmax(possible(logits, tokens, looked.start), -1)
    scores = log_p
    if temperature > 0:
        noise = [_gumbel(log_p[0], seed, slot) for slot in range(looked.start, looked.stop)]
        scores = log_p / temperature + torch.stack(noise)
    chosen = scores.argmax(-1)
    return chosen, log_p.gather(-1, chosen[:, None]).squeeze(-1).exp()


def _check(sure: Tensor) -> None:
    # No number: nothing was possible, or the model gave none. No guess is better than a made-up one.
    if bool(sure.isnan().any()):
        raise NothingFits


def _gumbel(like: Tensor, seed: int, slot: int) -> Tensor:
    """Return (vocabulary,) the random numbers of a slot (Gumbel's trick: their largest sum is a sample)."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + slot)
    uniform = torch.rand(like.shape, generator=generator).clamp(1e-20, 1 - 1e-7)
    return -torch.log(-torch.log(uniform)).to(like.device)


def _with(tokens: Tensor, start: int, guesses: Sequence[int]) -> Tensor:
    count = min(len(guesses), len(tokens) - start)
    if count:
        tokens[start : start + count] = torch.tensor(guesses[:count], device=tokens.device)
    return tokens


def _step(step: int, tokens: Tensor, confidence: Tensor, settled: int, end: int) -> Step:
    """Return what is shown: behind a guessed end there is no text either."""
    shown = tokens.clone()
    ends = (shown == end).nonzero()
    if len(ends):
        shown[int(ends[0]) :] = end
    open = torch.arange(len(tokens), device=tokens.device) >= settled
    # Nothing is known of how an open slot's distribution moved; a settled one's is a point.
    drift = torch.where(open, float("inf"), 0.0)
    return Step(step, len(tokens), shown, open, confidence.clone(), drift)

"""Autoregressive decoding as refinement of a canvas: Jacobi iteration, from any start.

    guess something for every slot
    until every slot is settled:
        one look: what would stand in each slot, given the guesses left of it?
        the slots from the first open one up to the first wrong guess settle
        guess again: by what the look said, or by n-grams of a text at hand

What settles is what one-token-a-step decoding writes, as a slot settles only when all left of it
has: the guess decides how many slots that is in a look, at least one, and never what stands in
them. (Jacobi decoding: Song et al. 2021, Santilli et al. 2023. Guesses by n-grams of the context:
prompt lookup decoding, Saxena 2023.) With one slot to a look (`PLAIN`) it is plain decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from frostline.decoding.loop import NothingFits, Step

# Tokens that a guess has at most.
AHEAD = 16


@dataclass(frozen=True, slots=True)
class Widths:
    """How many slots to look at at once, at most.

    Attributes:
        ahead: while the guesses stand.
        careful: where the last look found one wrong.
        blind: where nothing is guessed but what the last look said; 1 is plain decoding.
    """

    ahead: int = AHEAD
    careful: int = AHEAD
    blind: int = AHEAD


# A processor reads a few rows in the time of one, as all weights pass by for either, and more of them
# cost time: on one core a 0.5 billion model takes 0.18 s for one, 0.20 for three, 0.49 for eight.
ON_PROCESSOR = Widths(AHEAD, 3, 1)
PLAIN = Widths(1, 1, 1)

# (count, vocabulary) logits, (slots,) tokens and the first slot's number -> logits without what
# those slots must not become. May depend on tokens left of a slot only.
Possible = Callable[[Tensor, Tensor, int], Tensor]
# The tokens that are settled -> guesses for the next ones, none where there is nothing to go by.
Guess = Callable[[Sequence[int]], Sequence[int]]


def nothing(_: Sequence[int]) -> Sequence[int]:
    """Guess nothing: what the last look said is the next guess."""
    return ()


class NGrams:
    """Guesses by what followed the same tokens in texts at hand, the longest match first.

    Args:
        texts: tokens; on a tie the earlier text counts, and in it the later place.
        before: tokens before the first slot, which a match may reach into.
        old: what to guess before anything is settled; the first of the texts there are.
        longest, least: tokens of a match.
    """

    def __init__(
        self,
        texts: Sequence[Sequence[int]],
        before: Sequence[int] = (),
        old: Sequence[int] = (),
        *,
        longest: int = 4,
        least: int = 2,
    ) -> None:
        self._texts = texts = [old, *texts]
        self._before = tuple(before[-longest:])
        self._lengths = range(longest, least - 1, -1)
        self._found: dict[tuple[int, ...], tuple[int, int]] = {}
        for number, text in reversed(list(enumerate(texts))):
            for length in self._lengths:
                for end in range(length, len(text)):
                    self._found[tuple(text[end - length : end])] = number, end

    def __call__(self, settled: Sequence[int]) -> Sequence[int]:
        if not settled and self._texts[0]:
            return self._texts[0][:AHEAD]
        written = (*self._before, *settled)
        for length in self._lengths:
            place = self._found.get(written[-length:]) if len(written) >= length else None
            if place is not None:
                number, end = place
                return self._texts[number][end : end + AHEAD]
        return ()


class Refining:
    """One canvas on its way to the text that plain decoding writes; all tensors of shape (slots,).

    Like `loop.Denoising` it calls no model: it has a question and takes an answer.

    Args:
        tokens: what to start from.
        end: the token that says the text is over; it stands in every slot behind.
        widths: how many slots to look at at once.
        temperature: above 0 each slot has its own random numbers from `seed`, so that here too the
            text does not depend on the guesses.

    Attributes:
        tokens: settled tokens, and for the others the present guess.
        settled: how many are, from the first one on.
        now: the canvas as it is shown.
    """

    def __init__(
        self,
        tokens: Tensor,
        possible: Possible,
        end: int,
        guess: Guess = nothing,
        *,
        widths: Widths = Widths(),
        temperature: float = 0.0,
        seed: int = 0,
    ) -> None:
        self._possible, self._end, self._guess = possible, end, guess
        self._widths, self._stood = widths, True
        self._temperature, self._seed = temperature, seed
        self._confidence = torch.zeros(len(tokens), device=tokens.device)
        self._guessed = guess(())
        self.tokens = _with(tokens.clone(), 0, self._guessed)
        self.settled = 0
        self.now = self._shown(0)

    @property
    def done(self) -> bool:
        """Whether every slot is settled."""
        return self.settled == len(self.tokens)

    @property
    def count(self) -> int:
        """How many slots to look at next, from the first open one on."""
        widths = self._widths
        guessed = widths.ahead if self._stood else widths.careful
        most = guessed if len(self._guessed) else widths.blind
        return min(most, len(self.tokens) - self.settled)

    @torch.inference_mode()
    def answer(self, logits: Tensor) -> Step:
        """Settle what can be settled on (count, vocabulary) logits and return the canvas then.

        Raises:
            NothingFits: there is a slot that no token may stand in.
        """
        looked = slice(self.settled, self.settled + len(logits))
        chosen, sure = self._chosen(logits.float(), looked)
        wrong = (chosen != self.tokens[looked]).nonzero()
        certain = min(int(wrong[0]) + 1, len(chosen)) if len(wrong) else len(chosen)
        if bool(sure[:certain].isnan().any()):
            # Nothing was possible, or the model gave no numbers. No guess is better than a made-up one.
            raise NothingFits
        self._stood = not len(wrong)
        self.tokens[looked], self._confidence[looked] = chosen, sure
        self.settled += certain
        ended = (chosen[:certain] == self._end).nonzero()
        if len(ended):
            over = looked.start + int(ended[0])
            self.tokens[over:], self._confidence[over:] = self._end, self._confidence[over].clone()
            self.settled = len(self.tokens)
        else:
            self._guessed = self._guess(self.tokens[: self.settled].tolist())
            self.tokens = _with(self.tokens, self.settled, self._guessed)
        self.now = self._shown(self.now.step + 1)
        return self.now

    def _chosen(self, logits: Tensor, looked: slice) -> tuple[Tensor, Tensor]:
        """Return (count,) tokens that a look chooses for slots, and their probabilities."""
        log_p = torch.log_softmax(self._possible(logits, self.tokens, looked.start), -1)
        scores = log_p
        if self._temperature > 0:
            slots = range(looked.start, looked.stop)
            noise = [_gumbel(log_p[0], self._seed, slot) for slot in slots]
            scores = log_p / self._temperature + torch.stack(noise)
        chosen = scores.argmax(-1)
        return chosen, log_p.gather(-1, chosen[:, None]).squeeze(-1).exp()

    def _shown(self, step: int) -> Step:
        """Return the canvas: behind a guessed end there is no text either."""
        shown = self.tokens.clone()
        ends = (shown == self._end).nonzero()
        if len(ends):
            shown[int(ends[0]) :] = self._end
        open = torch.arange(len(shown), device=shown.device) >= self.settled
        # Nothing is known of how an open slot's distribution moved; a settled one's is a point.
        drift = torch.where(open, float("inf"), 0.0)
        return Step(step, len(shown), shown, open, self._confidence.clone(), drift)


def _gumbel(like: Tensor, seed: int, slot: int) -> Tensor:
    """Return (vocabulary,) the random numbers of a slot (Gumbel's trick: their largest sum is a sample)."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + slot)
    uniform = torch.rand(like.shape, generator=generator).clamp(1e-20, 1 - 1e-7)
    return -torch.log(-torch.log(uniform)).to(like.device)


def _with(tokens: Tensor, start: int, guesses: Sequence[int]) -> Tensor:
    count = min(len(guesses), len(tokens) - start)
    if count:
        guessed = torch.tensor(guesses[:count], dtype=tokens.dtype, device=tokens.device)
        tokens[start : start + count] = guessed
    return tokens

"""The denoise loop of models with uniform noise: draw for every slot, keep what is sure, noise the rest again.

    canvas = any tokens
    until the likeliest text stays the same and is sure:
        what the model thinks of every slot, told what it thought last
        the surest are accepted as drawn, all others get new noise
        show the likeliest text

There is no mask: a slot that is filled looks like one that is not, and nothing ever settles. What is
accepted in one step may be noise in the next, and the text is the likeliest one of the last step. (Block
diffusion with an entropy bound, as transformers' own DiffusionGemma class samples; given the same
random numbers, and nothing else, this comes to the same tokens.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from frostline.decoding.choose import within_entropy
from frostline.decoding.constrain import Rules
from frostline.decoding.loop import NothingFits, Step, divergence


class Sampler(Protocol):
    """The settings, as a checkpoint says them.

    Attributes:
        steps: at most.
        t_min, t_max: temperature of the last step, and before the first.
        entropy_bound: nats; the surest slots are accepted while their joint entropy is within it.
        stability: steps for which the likeliest text has to stay the same, to stop.
        confidence: nats a slot; the mean entropy has to be below it, to stop.
    """

    @property
    def steps(self) -> int: ...
    @property
    def t_min(self) -> float: ...
    @property
    def t_max(self) -> float: ...
    @property
    def entropy_bound(self) -> float: ...
    @property
    def stability(self) -> int: ...
    @property
    def confidence(self) -> float: ...


class Renoising:
    """One canvas on its way from noise to text; all tensors of shape (slots,) where nothing is said.

    Like `loop.Denoising` it calls no model: it has a question and takes an answer.

    Args:
        tokens: what the canvas starts with where it is no noise.
        open: which slots to fill; the others stay as they are, and count in no decision.
        noisy: which of the open ones start as noise, and get new noise when they are not accepted.
            The others go back to their token in `tokens`: a text that is to be kept for the most part.
        vocabulary: noise is any of so many tokens.
        generator: draws noise first, then in each step a token for every slot and noise again.
        first: the step to begin with, from 0; later ones are cooler.

    Attributes:
        open: which slots are filled.
        now: the canvas as it is shown: of every such slot the likeliest token. Open means not accepted.
        fed: what the model looks at next.
        believed: (slots, vocabulary) logits to tell the model of with it, None in the first step.
        converged: whether the text was stable and sure.
        done: whether it was, or the steps are spent.
    """

    def __init__(
        self,
        tokens: Tensor,
        open: Tensor,
        noisy: Tensor,
        rules: Rules,
        sampler: Sampler,
        vocabulary: int,
        generator: torch.Generator,
        first: int = 0,
    ) -> None:
        self.rules, self.sampler = rules, sampler
        self._vocabulary, self._generator = vocabulary, generator
        self.open = open
        self._start, self._noisy = tokens, open & noisy
        self._before: Tensor | None = None
        self._same, self._first = 0, first
        self.fed = torch.where(self._noisy, self._noise(), tokens)
        self.believed: Tensor | None = None
        self.converged = self.done = not bool(open.any())
        ones = torch.ones(len(tokens), device=tokens.device)
        steps = max(sampler.steps - first, 1)
        self.now = Step(0, steps, self.fed, open, ones, torch.zeros_like(ones))

    def question(self) -> Tensor:
        """Return the tokens that a model is to look at."""
        return self.fed

    @torch.inference_mode()
    def answer(self, logits: Tensor) -> Step:
        """Accept what is sure on (slots, vocabulary) logits, and return the canvas then.

        Raises:
            NothingFits: there is a slot that no token may stand in.
        """
        open, sampler = self.open, self.sampler
        logits = self.rules.possible(logits.float(), self.now.tokens, open)
        if not bool(logits.amax(-1)[open].isfinite().all()):
            # Nothing fits, or the model gave no numbers: no guess is better than a made-up one.
            raise NothingFits
        scaled = logits / self._temperature()
        # Of a slot that is not open all is known, and rules for others may leave nothing of it.
        scaled[~open] = self._known(scaled)
        drawn = torch.multinomial(scaled.softmax(-1), 1, generator=self._generator).squeeze(-1)
        entropy = entropies(scaled)
        accepted = within_entropy(entropy, open, sampler.entropy_bound)
        likeliest = torch.where(open, scaled.argmax(-1), self._start)
        text = torch.where(open & ~self._noisy & ~accepted, self._start, likeliest)
        step = self._shown(text, accepted, logits)
        renewed = torch.where(self._noisy, self._noise(), self._start)
        self.fed = torch.where(accepted, drawn, renewed)
        self.believed = scaled
        self._stop(text, entropy, step)
        return self.now

    def _temperature(self) -> Tensor:
        """Return the temperature of this step: from the highest down, a number as tensors make it."""
        sampler = self.sampler
        left = torch.tensor(sampler.steps - self._first - self.now.step, dtype=torch.int32)
        return sampler.t_min + (sampler.t_max - sampler.t_min) * (left / sampler.steps)

    def _shown(self, text: Tensor, accepted: Tensor, logits: Tensor) -> Step:
        """Return the canvas after this step; how sure is said at temperature 1, as everywhere."""
        log_p = torch.log_softmax(logits, -1)
        found = log_p.gather(-1, text[:, None]).squeeze(-1).exp()
        drift = divergence(log_p, self._before)
        # What was decided on other tokens than the likeliest is still moving.
        drift = torch.where(self.fed == text, drift, float("inf"))
        self._before = log_p
        return Step(
            self.now.step + 1,
            self.now.steps,
            text,
            self.open & ~accepted,
            torch.where(self.open, found, 1.0),
            torch.where(self.open, drift, 0.0),
        )

    def _stop(self, text: Tensor, entropy: Tensor, step: Step) -> None:
        """Take the step, and stop where the text is stable and sure, or the steps are spent."""
        sampler = self.sampler
        same = self.now.step > 0 and torch.equal(text, self.now.tokens)
        self._same = self._same + 1 if same else 0
        sure = float(entropy[self.open].mean()) < sampler.confidence
        self.converged = self._same >= sampler.stability and sure
        self.done = self.converged or step.step >= step.steps
        self.now = replace(step, open=torch.zeros_like(step.open)) if self.done else step

    def _noise(self) -> Tensor:
        tokens = self._start
        return torch.randint(
            self._vocabulary, tokens.shape, generator=self._generator, device=tokens.device
        )

    def _known(self, like: Tensor) -> Tensor:
        """Return (slots that are not open, vocabulary) logits that are sure of what stands there."""
        held = self._start[~self.open]
        known = like.new_full((len(held), like.shape[1]), float("-inf"))
        return known.scatter_(1, held[:, None], 0.0)


def entropies(logits: Tensor) -> Tensor:
    """Return (slots,) entropy in nats of (slots, vocabulary) logits."""
    log_p = torch.log_softmax(logits, -1)
    return -(log_p.exp() * log_p.clamp(min=torch.finfo(log_p.dtype).min)).sum(-1)

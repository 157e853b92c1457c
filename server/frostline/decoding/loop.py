"""The denoise loop: look, settle, repeat.

    tokens, open = noise
    while some slot is open:
        what the model thinks of every open slot
        the surest settle; the rest stays open
        show

Everything that differs between samplers is passed in: `Rules` say what a slot may become, `Choice` who
settles, the schedule how many. Settled slots are clamped: each step gives them to the model as they
are. Only `resize` makes new open ones, where the model says that there is more to write.

The loop does not call a model. It says what it wants looked at (`question`) and takes the logits
(`answer`), so that whoever drives it can look for many loops in one pass, or let one wait.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from frostline.decoding.choose import Choice, Views
from frostline.decoding.constrain import Rules
from frostline.decoding.length import Resized, padded_out
from frostline.decoding.schedule import Schedule, due

Predict = Callable[[Tensor], Tensor]


class NothingFits(Exception):
    """A slot has no token left that is possible: by the rules, or because the model gives no numbers."""


@dataclass(frozen=True, slots=True)
class Step:
    """The canvas after a step; all tensors of shape (slots,).

    Attributes:
        step: steps taken, from 1.
        steps: the budget.
        tokens: settled tokens, and for open slots the present best guess.
        open: which slots are undecided.
        confidence: probability with which a slot settled, or that of its guess now.
        drift: divergence (KL, nats) of an open slot's distribution from the step before; infinite
            in the first step, 0 for settled slots, whose distribution is a single point.
    """

    step: int
    steps: int
    tokens: Tensor
    open: Tensor
    confidence: Tensor
    drift: Tensor


class Denoising:
    """One canvas on its way from noise to text; all tensors of shape (slots,).

    Args:
        tokens: the canvas; what stands at open slots is of no account.
        open: which slots to fill.
        noise: what an open slot is looked at as.
        steps: budget; all that is left settles in the last of them, save a beginning that has still to
            be spelled.
        temperature: 0 proposes the likeliest token; above, tokens are drawn with `generator`.

    Attributes:
        now: the canvas after the last step.
    """

    def __init__(
        self,
        tokens: Tensor,
        open: Tensor,
        noise: Tensor,
        rules: Rules,
        choice: Choice,
        schedule: Schedule,
        steps: int,
        *,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        self.rules, self.choice, self.schedule = rules, choice, schedule
        self.temperature, self.generator = temperature, generator
        self._noise = noise
        # The stretch that the schedule is for: steps before it, steps in it, slots to settle in it.
        self._begun, self._steps, self._slots = 0, steps, int(open.sum())
        self._before: Tensor | None = None
        ones = torch.ones(len(tokens), device=tokens.device)
        self.now = Step(0, steps, tokens.clone(), open.clone(), ones, torch.zeros_like(ones))

    @property
    def done(self) -> bool:
        """Whether no slot is open."""
        return not bool(self.now.open.any())

    def question(self) -> Tensor:
        """Return the tokens that a model is to look at: what is settled, and noise."""
        return torch.where(self.now.open, self._noise, self.now.tokens)

    @torch.inference_mode()
    def answer(self, logits: Tensor) -> Step:
        """Settle what can be settled on (slots, vocabulary) logits and return the canvas then.

        Raises:
            NothingFits: there is a slot that no token may stand in.
        """
        now, rules = self.now, self.rules
        log_p = torch.log_softmax(rules.possible(logits.float(), now.tokens, now.open), -1)
        if not bool(log_p.amax(-1)[now.open].isfinite().all()):
            # Nothing fits, or the model gave no numbers: no guess is better than a made-up one.
            raise NothingFits
        views = viewed(log_p, self.temperature, self.generator)
        taken = now.step - self._begun
        count = due(self.schedule, taken, self._steps, self._slots, int(now.open.sum()))
        ready = rules.ready(views.proposed, now.tokens, now.open, count)
        settled = self.choice.settled(views, ready, count)
        tokens = torch.where(now.open, views.proposed, now.tokens)
        confidence = torch.where(now.open, views.confidence, now.confidence)
        drift = torch.where(now.open, divergence(log_p, self._before), 0.0)
        open = now.open & ~settled
        if rules.pad is not None:
            tokens, open = padded_out(tokens, open, rules.gap, rules.pad)
        self._before = log_p
        step = now.step + 1
        self.now = Step(step, max(self._begun + self._steps, step), tokens, open, confidence, drift)
        return self.now

    def resize(self, to: Resized, noise: Tensor, rules: Rules, steps: int) -> None:
        """Go on with a canvas of another length, in `steps` more steps.

        Args:
            noise: (new slots,) what open ones are looked at as.
            rules: those of the new slots.
        """
        now = self.now
        tokens, confidence, drift = (
            one[to.source] for one in (now.tokens, now.confidence, now.drift)
        )
        open = now.open[to.source] | to.fresh
        self.rules, self._noise, self._before = rules, noise, None
        self._begun, self._steps, self._slots = now.step, steps, int(open.sum())
        tokens = torch.where(to.fresh, noise, tokens)
        self.now = Step(now.step, now.step + steps, tokens, open, confidence, drift)


def denoise(denoising: Denoising, predict: Predict) -> Iterator[Step]:
    """Yield the canvas after each step until no slot is open, for a loop that has a model to itself.

    Args:
        predict: (slots,) tokens -> (slots, vocabulary) logits for each slot.
    """
    while not denoising.done:
        yield denoising.answer(predict(denoising.question()))


def viewed(log_p: Tensor, temperature: float, generator: torch.Generator | None) -> Views:
    """Return what (slots, vocabulary) log-probabilities say about each slot.

    Entropy and the probabilities are those of the model, at temperature 1: a threshold means the
    same whatever the sampling temperature.
    """
    p = log_p.exp()
    top = p.topk(2, dim=-1).values
    entropy = -(p * log_p.masked_fill(p == 0, 0.0)).sum(-1)
    if temperature > 0:
        uniform = torch.rand(log_p.shape, generator=generator, dtype=torch.float32).to(log_p.device)
        gumbel = -torch.log(-torch.log(uniform.clamp(1e-20, 1 - 1e-7)))
        proposed = (log_p / temperature + gumbel).argmax(-1)
    else:
        proposed = log_p.argmax(-1)
    confidence = p.gather(-1, proposed[:, None]).squeeze(-1)
    return Views(proposed, confidence, top[:, 0], top[:, 1], entropy)


def divergence(log_p: Tensor, before: Tensor | None) -> Tensor:
    """Return (slots,) KL(now || before) in nats, infinite without a step before."""
    if before is None:
        return torch.full(log_p.shape[:1], float("inf"), device=log_p.device)
    # What is impossible now adds nothing; what was impossible before and is not now is a surprise
    # without bound, and a large number says so without poisoning the sum.
    terms = log_p.exp() * (log_p.clamp(min=-60.0) - before.clamp(min=-60.0))
    return terms.sum(-1).clamp(min=0.0)


Asking = Generator[Tensor, Tensor, Tensor]


def likelihood(tokens: Tensor, noise: Tensor) -> Asking:
    """Ask for logits, and return (slots,) log-probabilities (nats) of present tokens.

    Each half is seen by the other, in two looks: even slots noised with the odd ones in view, then
    the other way round (the pseudo-likelihood of masked language models, with two groups instead of
    one slot at a time).
    """
    result = torch.zeros(len(tokens), device=tokens.device)
    even = torch.arange(len(tokens), device=tokens.device) % 2 == 0
    for group in (even, ~even):
        if group.any():
            logits = yield torch.where(group, noise, tokens)
            log_p = torch.log_softmax(logits.float(), -1)
            found = log_p.gather(-1, tokens[:, None]).squeeze(-1)
            result = torch.where(group, found, result)
    return result

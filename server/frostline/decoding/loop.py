"""The denoise loop: propose, settle, repeat.

    tokens, open = noise
    while some slot is open:
        proposed, confidence = what the model thinks of every slot
        the surest settle; the rest stays open
        show

Everything that differs between samplers is passed in: `predict` is the model, `Rules` what a slot may
become, `Choice` who settles, the schedule how many. Settled slots are clamped: each step gives them
to the model as they are, and nothing here writes them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from frostline.decoding.choose import Choice, Views
from frostline.decoding.constrain import Rules
from frostline.decoding.length import padded_out
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


@torch.inference_mode()
def denoise(
    tokens: Tensor,
    open: Tensor,
    predict: Predict,
    rules: Rules,
    choice: Choice,
    schedule: Schedule,
    steps: int,
    *,
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
) -> Iterator[Step]:
    """Yield the canvas after each step until no slot is open.

    Args:
        tokens: (slots,) the canvas: noise where open, text elsewhere.
        open: (slots,) which slots to fill.
        predict: (slots,) tokens -> (slots, vocabulary) logits for each slot.
        steps: budget; all that is left settles in the last of them, save a beginning that has still to
            be spelled.
        temperature: 0 proposes the likeliest token; above, tokens are drawn with `generator`.

    Raises:
        NothingFits: there is a slot that no token may stand in.
    """
    noise, open = tokens.clone(), open.clone()
    tokens, confidence = tokens.clone(), torch.ones(len(tokens), device=tokens.device)
    slots = int(open.sum())
    before: Tensor | None = None
    step = 0
    while open.any():
        logits = predict(torch.where(open, noise, tokens)).float()
        log_p = torch.log_softmax(rules.possible(logits, tokens, open), -1)
        if not bool(log_p[open].isfinite().any(-1).all()):
            # Nothing fits, or the model gave no numbers: no guess is better than a made-up one.
            raise NothingFits
        views = viewed(log_p, temperature, generator)
        count = due(schedule, step, steps, slots, int(open.sum()))
        settled = choice.settled(views, rules.ready(views.proposed, tokens, open, count), count)
        tokens = torch.where(open, views.proposed, tokens)
        confidence = torch.where(open, views.confidence, confidence)
        drift = torch.where(open, divergence(log_p, before), 0.0)
        before, open, step = log_p, open & ~settled, step + 1
        if rules.pad is not None:
            tokens, open = padded_out(tokens, open, rules.gap, rules.pad)
        yield Step(step, max(steps, step), tokens, open, confidence, drift)


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


@torch.inference_mode()
def likelihood(tokens: Tensor, noise: Tensor, predict: Predict) -> Tensor:
    """Return (slots,) log-probabilities (nats) of present tokens, each half seen by the other.

    Two passes: even slots noised with the odd ones in view, then the other way round (the
    pseudo-likelihood of masked language models, with two groups instead of one slot at a time).
    """
    result = torch.zeros(len(tokens), device=tokens.device)
    even = torch.arange(len(tokens), device=tokens.device) % 2 == 0
    for group in (even, ~even):
        if group.any():
            log_p = torch.log_softmax(predict(torch.where(group, noise, tokens)).float(), -1)
            found = log_p.gather(-1, tokens[:, None]).squeeze(-1)
            result = torch.where(group, found, result)
    return result

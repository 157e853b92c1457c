"""Ways to fill a hole that can be compared: the product's, and those that it has to beat.

Each takes the same case, canvas and rules to a text, so that what differs is what the name says.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import torch
from torch import Tensor

from frostline.evals.clock import Clock
from frostline.evals.holes import PER_TOKEN, Case
from frostline.models.backend import Backend, Look, MaskedBackend
from frostline.models.spec import Length
from frostline.wire import messages as wire
from frostline.worker import canvas as canvases
from frostline.worker.canvas import Canvas
from frostline.worker.engine import Engine
from frostline.worker.vocabulary import Vocabulary

# What the ways are called in a table.
PLAIN, OURS, WHOLE = "plain loop", "Frostline", "whole steps"

AnyBackend = TypeVar("AnyBackend", bound=Backend)


@dataclass(frozen=True, slots=True)
class Filled:
    """What came of a hole, and what it cost."""

    text: str
    seconds: float
    figures: wire.Figures


Fill = Callable[[Case], Filled]


def ours(
    backend: Backend,
    clock: Clock,
    decoding: wire.Decoding | None = None,
    room: Callable[[Case], int | None] = lambda _: None,
) -> Fill:
    """Return the product's loop, as the worker runs it."""
    engine, context = Engine(backend), backend.spec.max_context * PER_TOKEN
    chosen = decoding or wire.Decoding()

    def fill(case: Case) -> Filled:
        request = wire.Infill("bench", case.segments(context, room(case)), decoding=chosen)
        began = clock()
        *_, done = engine.alone(request)
        assert isinstance(done, wire.Done)
        return Filled(done.gaps[0].text, clock() - began, done.figures)

    return fill


def plain(
    backend: Backend, clock: Clock, room: Callable[[Case], int | None] = lambda _: None
) -> Fill:
    """Return the field's plain loop: the surest token settles, all of the window is computed anew.

    A step for each slot, as in LLaDA's and Dream's own loops; where a pad was put the text ends.
    """
    vocabulary, context = Vocabulary(backend), backend.spec.max_context * PER_TOKEN

    def fill(case: Case) -> Filled:
        began = clock()
        canvas = canvases.build(case.segments(context, room(case)), "", backend, at_start=False)
        tokens = one_by_one(backend, canvas, vocabulary.rules(canvas).banned)
        (gap,) = canvas.gaps
        pad = backend.spec.pad
        text = tokens[: tokens.index(pad)] if pad in tokens else tokens
        sure = [1.0] * len(text)
        spelled = canvases.spell(gap, text, [2] * len(text), sure, vocabulary.spelling, pad)
        figures = wire.Figures(steps=len(tokens), forwards=len(tokens), tokens=len(text))
        return Filled(spelled.text, clock() - began, figures)

    return fill


@torch.inference_mode()
def one_by_one(backend: Backend, canvas: Canvas, banned: Tensor) -> list[int]:
    """Return the tokens that a canvas comes to, settled one at a time, the surest first."""
    run = backend.open(canvas)
    tokens = backend.noise(len(canvas.slots)).clone()
    open = torch.ones_like(tokens, dtype=torch.bool)
    while open.any():
        (logits,) = backend.look([Look(run, tokens, whole=True)])
        sure, best = torch.softmax(logits.float().masked_fill(banned, -torch.inf), -1).max(-1)
        slot = sure.masked_fill(~open, -1).argmax()
        tokens[slot], open[slot] = best[slot], False
    return [int(one) for one in tokens]


def without_lengths(backend: AnyBackend) -> AnyBackend:
    """Return the same model as one that cannot say where a text ends: every slot becomes text."""
    if (pad := backend.spec.pad) is None:
        return backend
    other = copy.copy(backend)
    banned = (*backend.spec.banned, pad)
    other.spec = msgspec.structs.replace(backend.spec, length=Length("fixed"), banned=banned)
    return other


def without_cache(backend: MaskedBackend) -> MaskedBackend:
    """Return the same model, with the whole window computed anew in every look."""
    other = copy.copy(backend)
    other.refresh_every = 0
    return other


def with_threshold(threshold: float | None) -> wire.Decoding:
    """Return the usual decoding with another threshold."""
    return wire.Decoding(threshold=threshold)


def true_length(case: Case) -> int:
    """Return as many slots as the hole's own text has tokens."""
    return case.tokens

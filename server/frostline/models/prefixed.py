"""Models with an encoder and a canvas: what is before a hole is read once, the canvas at every look.

The canvas begins with the first slot. What is behind a hole stands in it as well, as far as it reaches:
its head, and the text between several holes. The encoder is causal, so what is kept of it is exact,
also for a later request whose text before the hole begins alike.

With uniform noise a slot never looks empty, so each look is told what the one before it came to
(self-conditioning). Frozen tokens are told as known.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import DynamicCache

from frostline.models.backend import Backend, Canvas, Look
from frostline.models.spec import ModelSpec
from frostline.models.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Encoded:
    """A prefix that the encoder has read.

    Attributes:
        ids: (length,) its tokens.
        kept: its keys and values. Never added to: what goes on from here takes a copy.
    """

    ids: Tensor
    kept: DynamicCache


class CanvasBackend(Backend):
    """A model with a causal encoder, a canvas that sees all of itself, and uniform noise."""

    def __init__(self, folder: Path, spec: ModelSpec, tokens: Tokens, model: nn.Module) -> None:
        self.folder = folder
        self.spec = spec
        self.tokens = tokens
        self.device = next(model.parameters()).device
        # transformers' classes are typed as little more than modules.
        self.model: Any = model
        self.config: Any = cast(Any, model).config.get_text_config()
        self.vocabulary: int = self.config.vocab_size
        self._last: Encoded | None = None

    def open(self, canvas: Canvas) -> CanvasRun:
        return CanvasRun(self, canvas)

    def noise(self, count: int) -> Tensor:
        """Return (count,) tokens of any kind, the same ones each time: a score is no throw of dice."""
        draw = torch.Generator().manual_seed(count)
        return torch.randint(self.vocabulary, (count,), generator=draw).to(self.device)

    def rows(self, look: Look) -> int:
        return cast(CanvasRun, look.run).rows(look)

    def look(self, looks: Sequence[Look]) -> list[Tensor]:
        return [cast(CanvasRun, one.run).look(one) for one in looks]

    @torch.inference_mode()
    def encoded(self, ids: Tensor, *, anew: bool = False) -> Encoded:
        """Return what the encoder makes of (length,) tokens.

        Args:
            anew: take nothing over from the prefix that was read last.
        """
        known = None if anew else self._last
        if known is None or not _begins(ids, known.ids):
            known = Encoded(ids[:0], DynamicCache(config=self.config))
        start = len(known.ids)
        if start < len(ids):
            kept = _copied(known.kept)
            positions = torch.arange(start, len(ids), device=ids.device)
            self.model.model.encoder(
                input_ids=ids[None, start:], position_ids=positions[None], cache=kept
            )
            known = Encoded(ids, kept)
        if not anew:
            self._last = known
        return known


class CanvasRun:
    """Looks at one canvas. Counts them in `forwards`."""

    def __init__(self, backend: CanvasBackend, canvas: Canvas) -> None:
        self._backend = backend
        before, ids, slots = laid_out(canvas, backend.spec)
        self._before = before.to(backend.device)
        self._ids, self._slots = ids.to(backend.device), slots.to(backend.device)
        self._encoded: Encoded | None = None
        self.turns: Tensor | None = None
        self.forwards = 0

    def predict(self, tokens: Tensor) -> Tensor:
        """Return (slots, vocabulary) logits for each slot, given (slots,) tokens in them."""
        return self.look(Look(self, tokens))

    def rows(self, look: Look) -> int:
        """Return how many rows a look needs, at most."""
        known = self._encoded is not None and not look.whole
        return len(self._ids) + (0 if known else len(self._before))

    @torch.inference_mode()
    def look(self, look: Look) -> Tensor:
        """Return (slots, vocabulary) logits for each slot."""
        # Frozen tokens are written fresh, so no look can have changed them.
        ids = self._ids.clone()
        ids[self._slots] = look.tokens.to(ids.device)
        if look.whole:
            encoded = self._backend.encoded(self._before, anew=True)
        else:
            encoded = self._encoded = self._encoded or self._backend.encoded(self._before)
        said = self._backend.model(
            decoder_input_ids=ids[None],
            cache=encoded.kept,
            self_conditioning_logits=self._conditioning(look.believed),
        )
        self.forwards += 1
        logits: Tensor = said.logits[0]
        return logits[self._slots]

    def _conditioning(self, believed: Tensor | None) -> Tensor | None:
        """Return (1, canvas, vocabulary) logits: what is believed of slots, and what is known of the rest."""
        if believed is None:
            return None
        kind = self._backend.model.dtype
        all_but = torch.finfo(kind).min
        told = torch.full((len(self._ids), believed.shape[1]), all_but, dtype=kind)
        told = told.to(believed.device)
        told.scatter_(1, self._ids[:, None], 0.0)
        told[self._slots] = believed.to(kind)
        return told[None]


def laid_out(canvas: Canvas, spec: ModelSpec) -> tuple[Tensor, Tensor, Tensor]:
    """Return (before,) tokens for the encoder, (canvas,) tokens from the first slot on, and (slots,) places.

    What does not fit the canvas is left out at its end. The encoder always has a token to read, the one
    that a text begins with: the model has never seen one without it.
    """
    ids, first = canvas.ids, int(canvas.slots[0])
    before, begin = ids[:first], spec.begin_of_file
    if begin is not None and (not len(before) or int(before[0]) != begin):
        before = torch.cat([torch.tensor([begin]), before])
    return before, ids[first : first + spec.block], canvas.slots - first


def _begins(ids: Tensor, start: Tensor) -> bool:
    return len(start) <= len(ids) and bool((ids[: len(start)] == start).all())


def _copied(kept: DynamicCache) -> DynamicCache:
    """Return keys and values that can be added to. Adding makes new tensors, so the old ones are shared."""
    made = copy(kept)
    made.layers = [copy(layer) for layer in kept.layers]
    return made

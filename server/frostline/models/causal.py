"""The autoregressive peer: a model that reads left to right, with what is behind a hole quoted in front.

Each stretch of slots has a prompt of its own and is filled after the ones before it. The first look
takes in the prompt and keeps its keys and values; later ones compute a few slots' rows alone, in the
place of the old ones. A row sees nothing behind it, so what is kept is exact, and so is what a prompt
takes over from an earlier one that began alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from frostline.models import attention
from frostline.models.attention import Kept, Share
from frostline.models.backend import Backend, Canvas, Look
from frostline.models.fim import Fim
from frostline.models.memory import Memory
from frostline.models.spec import ModelSpec
from frostline.models.tokens import Tokens

# Tokens that are read at once on a processor, which takes seconds for a thousand of them.
ON_PROCESSOR = 1024


class CausalBackend(Backend):
    """A fill-in-the-middle model.

    Attributes:
        fim: the special tokens of its prompts.
        memory: keys and values of the prompts that were read last.
    """

    def __init__(
        self, folder: Path, spec: ModelSpec, tokens: Tokens, model: nn.Module, fim: Fim
    ) -> None:
        self.folder = folder
        self.fim = fim
        self.tokens = tokens
        self.device = next(model.parameters()).device
        most = ON_PROCESSOR if self.device.type == "cpu" else spec.max_context
        self.spec = msgspec.structs.replace(spec, max_context=min(spec.max_context, most))
        # transformers' classes are typed as little more than modules.
        self.model: Any = model
        cast(Any, model).config._attn_implementation = attention.NAME
        self.vocabulary: int = cast(Any, model).config.vocab_size
        self.memory = Memory()
        # Stands for a mask that has been made: which rows see which is said to `attend`.
        self._no_mask = torch.zeros((1, 1, 1, 1), device=self.device)

    def open(self, canvas: Canvas) -> CausalRun:
        return CausalRun(self, canvas)

    def noise(self, count: int) -> Tensor:
        return torch.full((count,), self.fim.ends[0], device=self.device)

    def rows(self, look: Look) -> int:
        return cast(Filling | CausalRun, look.run).rows()

    def look(self, looks: Sequence[Look]) -> list[Tensor]:
        """Return (count, vocabulary) logits for each look at a Filling, all of them in one pass.

        A look at a whole run is (slots, vocabulary): each slot, given what stands left of it.
        """
        fillings = [(one.run, one.tokens) for one in looks if isinstance(one.run, Filling)]
        seen = iter(self._packed(fillings) if fillings else [])
        return [
            next(seen) if isinstance(one.run, Filling) else one.run.predict(one.tokens)
            for one in looks
        ]

    @torch.inference_mode()
    def _packed(self, fillings: Sequence[tuple[Filling, Tensor]]) -> list[Tensor]:
        asked = [filling.asked(tokens) for filling, tokens in fillings]
        pack, read_at, start = list[Share](), [], 0
        for one in asked:
            rows = slice(start, start + len(one.ids))
            window = len(one.at) if one.fresh else one.kept.keys[0].shape[2]
            seen = torch.arange(window, device=self.device) <= one.at[:, None]
            pack.append(Share(rows, None if one.fresh else one.at, one.kept, seen))
            read_at.append(one.read_at + start)
            start = rows.stop
        hidden = self.model.model(
            input_ids=torch.cat([one.ids for one in asked])[None],
            position_ids=torch.cat([one.at for one in asked])[None],
            attention_mask=self._no_mask,
            use_cache=False,
            pack=pack,
        ).last_hidden_state[0]
        logits: Tensor = self.model.lm_head(hidden[torch.cat(read_at)])
        for filling, _ in fillings:
            filling.looked()
        return list(logits.split([len(one.read_at) for one in asked]))


class CausalRun:
    """The prompts of one canvas. Counts looks at all of them in `forwards`."""

    def __init__(self, backend: CausalBackend, canvas: Canvas) -> None:
        self._backend = backend
        self._ids, self._slots = canvas.ids, canvas.slots
        self.turns: Tensor | None = None
        self.forwards = 0

    def around(self, slots: slice, tokens: Tensor, known: Tensor) -> tuple[list[int], list[int]]:
        """Return the tokens before and behind a stretch of slots.

        Args:
            tokens: (slots of the canvas,) what stands in them.
            known: (slots of the canvas,) booleans, which of them are text by now. What comes to stand
                in others is not known yet, so they are left out.
        """
        start, stop = int(self._slots[slots.start]), int(self._slots[slots.stop - 1]) + 1
        filled, text = self._ids.clone(), torch.ones(len(self._ids), dtype=torch.bool)
        filled[self._slots] = tokens.cpu()
        text[self._slots] = known.cpu() & (tokens.cpu() != self._backend.fim.ends[0])
        return filled[:start][text[:start]].tolist(), filled[stop:][text[stop:]].tolist()

    def filling(self, before: list[int], behind: list[int], slots: int) -> Filling:
        """Return the filling of so many slots between these tokens."""
        return Filling(self, self._backend, before, behind, slots)

    def rows(self) -> int:
        """Return about how many rows a look at all of its slots needs."""
        return len(self._ids)

    def predict(self, tokens: Tensor) -> Tensor:
        """Return (slots, vocabulary) logits for each slot, given (slots,) tokens left of it."""
        logits = []
        for slots in stretches(self._slots):
            known = torch.arange(len(self._slots)) < slots.start
            filling = self.filling(*self.around(slots, tokens, known), slots.stop - slots.start)
            logits.append(filling.predict(tokens[slots]))
        return torch.cat(logits)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The rows of one look.

    Attributes:
        ids: (rows,) tokens.
        at: (rows,) where they stand in the prompt and its slots.
        read_at: (count,) the row where each slot is read.
        kept: where keys and values are or go to.
        fresh: whether nothing is kept yet, so that these are all rows up to the last.
    """

    ids: Tensor
    at: Tensor
    read_at: Tensor
    kept: Kept
    fresh: bool


class Filling:
    """A stretch of slots behind its prompt, and the keys and values kept of both.

    Attributes:
        settled: slots that have their token for good; a look reads those from there on.
        count: how many of them a look reads.
    """

    def __init__(
        self,
        run: CausalRun,
        backend: CausalBackend,
        before: list[int],
        behind: list[int],
        slots: int,
    ) -> None:
        self._run, self._backend = run, backend
        self._prompt = torch.tensor(backend.fim.prompt(before, behind), device=backend.device)
        # The last slot is read, and nothing is read at it.
        self._everywhere = torch.arange(len(self._prompt) + slots - 1, device=backend.device)
        self._whole = self._everywhere
        self._kept = Kept()
        self.settled, self.count = 0, slots
        self.turns: Tensor | None = None
        self.forwards = 0

    def predict(self, tokens: Tensor) -> Tensor:
        """Return (count, vocabulary) logits for `count` slots from `settled` on.

        Args:
            tokens: (slots,) what stands in the slots; that of settled ones has to be what stood there
                when they settled.
        """
        return self._backend.look([Look(self, tokens)])[0]

    def rows(self) -> int:
        """Return how many rows a look needs, at most."""
        return self.count if self.forwards else len(self._prompt) + self.count

    def asked(self, tokens: Tensor) -> _Asked:
        """Return the rows that a look needs."""
        self._whole = torch.cat([self._prompt, tokens.to(self._prompt.device)])[:-1]
        # A slot is read at the token before it.
        first = read = len(self._prompt) + self.settled - 1
        if not self.forwards:
            first = self._backend.memory.recall(self._whole, read, self._kept)
            for one in (*self._kept.keys, *self._kept.values):
                # Room that no look has filled: it is not seen, but no number times nothing is none.
                one[:, :, first:] = 0
        at = self._everywhere[first : read + self.count]
        fresh = not self._kept.keys
        return _Asked(self._whole[at], at, at[read - first :] - first, self._kept, fresh)

    def looked(self) -> None:
        """Take note of a look that was had."""
        if not self.forwards:
            _widen(self._kept, len(self._everywhere))
            self._backend.memory.remember(self._whole, len(self._prompt), self._kept)
        self.forwards += 1
        self._run.forwards += 1


def _widen(kept: Kept, length: int) -> None:
    """Make room for a window of `length`."""
    for tensors in (kept.keys, kept.values):
        for layer, one in enumerate(tensors):
            if one.shape[2] < length:
                tensors[layer] = F.pad(one, (0, 0, 0, length - one.shape[2]))


def stretches(places: Tensor) -> list[slice]:
    """Return the runs of (n,) ascending places that lie directly behind each other."""
    borders = ((places[1:] - places[:-1]) > 1).nonzero().flatten() + 1
    edges = [0, *borders.tolist(), len(places)]
    return [slice(start, stop) for start, stop in pairwise(edges) if start < stop]

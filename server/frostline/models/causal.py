"""The autoregressive peer: a model that reads left to right, with what is behind a hole quoted in front.

Each gap of a canvas has a prompt of its own and is filled after the ones before it. The first pass
takes in the prompt and all slots and keeps their keys and values; later ones compute the open slots'
rows alone, in the place of the old ones. A row sees nothing behind it, so what is kept is exact, and
so is what a prompt takes over from an earlier one that began alike.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from frostline.models import attention
from frostline.models.attention import Kept, Share
from frostline.models.fim import Fim
from frostline.models.memory import Memory
from frostline.models.spec import ModelSpec
from frostline.models.tokens import Tokens


class GappedCanvas(Protocol):
    """A window of tokens with slots in it, numbered by gap."""

    @property
    def ids(self) -> Tensor:
        """(length,) tokens; what stands at slots is of no account."""

    @property
    def slots(self) -> Tensor:
        """(slots,) where the slots lie, ascending."""

    @property
    def gap(self) -> Tensor:
        """(slots,) number of each slot's gap, ascending."""


class CausalBackend:
    """A fill-in-the-middle model.

    Attributes:
        fim: the special tokens of its prompts.
        memory: keys and values of the prompts that were read last.
    """

    def __init__(self, spec: ModelSpec, fim: Fim, tokens: Tokens, model: nn.Module) -> None:
        self.spec = spec
        self.fim = fim
        self.tokens = tokens
        self.device = next(model.parameters()).device
        # transformers' classes are typed as little more than modules.
        self.model: Any = model
        cast(Any, model).config._attn_implementation = attention.NAME
        self.vocabulary: int = cast(Any, model).config.vocab_size
        self.memory = Memory()
        # Stands for a mask that has been made: which rows see which is said to `attend`.
        self._no_mask = torch.zeros((1, 1, 1, 1), device=self.device)

    def open(self, canvas: GappedCanvas) -> CausalRun:
        """Return a run over this canvas."""
        return CausalRun(self, canvas)

    def noise(self, count: int) -> Tensor:
        """Return (count,) tokens that say nothing: ends of a text."""
        return torch.full((count,), self.fim.ends[0], device=self.device)

    @torch.inference_mode()
    def rows(self, ids: Tensor, at: Tensor, read_at: Tensor, kept: Kept, *, first: bool) -> Tensor:
        """Return (read, vocabulary) logits at some of the rows of a window.

        Args:
            ids: (rows,) tokens.
            at: (rows,) their places in the window; all of it with `first` and nothing known.
            read_at: (read,) which rows to read.
            kept: keys and values of the window; those of these rows are written.
            first: whether `kept` is empty.
        """
        window = len(ids) if first else kept.keys[0].shape[2]
        seen = torch.arange(window, device=self.device) <= at[:, None]
        share = Share(slice(0, len(ids)), None if first else at, kept, seen)
        hidden = self.model.model(
            input_ids=ids[None],
            position_ids=at[None],
            attention_mask=self._no_mask,
            use_cache=False,
            pack=[share],
        ).last_hidden_state[0]
        logits: Tensor = self.model.lm_head(hidden[read_at])
        return logits


class CausalRun:
    """The prompts of one canvas. Counts passes in `forwards`."""

    def __init__(self, backend: CausalBackend, canvas: GappedCanvas) -> None:
        self._backend = backend
        self._ids, self._slots, self._gap = canvas.ids, canvas.slots, canvas.gap
        self.forwards = 0

    def around(self, gap: int, tokens: Tensor) -> tuple[list[int], list[int]]:
        """Return the tokens before and behind gap `gap`, given (slots,) tokens of the gaps before it.

        Gaps behind it are left out: what comes to stand there is not known yet.
        """
        end = self._backend.fim.ends[0]
        here = self._slots[self._gap == gap]
        start, stop = int(here[0]), int(here[-1]) + 1
        filled, frozen = self._ids.clone(), torch.ones(len(self._ids), dtype=torch.bool)
        filled[self._slots] = tokens.cpu()
        frozen[self._slots] = (self._gap < gap) & (tokens.cpu() != end)
        before, behind = filled[:start][frozen[:start]], filled[stop:][frozen[stop:]]
        return before.tolist(), behind.tolist()

    def at(self, gap: int, tokens: Tensor) -> Infilling:
        """Return the filling of gap `gap`, given (slots,) tokens of the gaps before it."""
        before, behind = self.around(gap, tokens)
        return Infilling(self, self._backend, before, behind, int((self._gap == gap).sum()))

    def predict(self, tokens: Tensor) -> Tensor:
        """Return (slots, vocabulary) logits for each slot, given (slots,) tokens left of it."""
        logits = []
        for gap in self._gap.unique().tolist():
            here = (self._gap == gap).to(tokens.device)
            filling = self.at(gap, tokens)
            logits.append(filling.score(tokens[here], 0, filling.slots))
        return torch.cat(logits)


class Infilling:
    """One gap behind its prompt, and the keys and values kept of both."""

    def __init__(
        self,
        run: CausalRun,
        backend: CausalBackend,
        before: list[int],
        behind: list[int],
        slots: int,
    ) -> None:
        self._run, self._backend, self.slots = run, backend, slots
        prompt = backend.fim.prompt(before, behind)
        self._prompt = torch.tensor(prompt, device=backend.device)
        # The last slot is read, and nothing is read at it.
        self._everywhere = torch.arange(len(prompt) + slots - 1, device=backend.device)
        self._kept = Kept()

    def score(self, tokens: Tensor, settled: int, count: int) -> Tensor:
        """Return (count, vocabulary) logits for the slots from `settled` on.

        Args:
            tokens: (slots,) what stands in the slots; that of slots before `settled` has to be what
                stood there when they settled.
        """
        self._run.forwards += 1
        start = len(self._prompt)
        last = start + settled - 1
        if self._kept.keys:
            at = self._everywhere[last : last + count]
            ids = torch.cat([self._prompt[-1:], tokens])[settled : settled + count]
            everything = torch.arange(len(at), device=at.device)
            return self._backend.rows(ids, at, everything, self._kept, first=False)
        whole = torch.cat([self._prompt, tokens])[:-1]
        memory = self._backend.memory
        known = memory.recall(whole, start - 1, self._kept)
        at = self._everywhere[known:]
        read_at = torch.arange(last, last + count, device=at.device) - known
        logits = self._backend.rows(whole[known:], at, read_at, self._kept, first=not known)
        memory.remember(whole, start, self._kept)
        return logits

"""A loop of the field beside ours: same weights, same text before a hole, in one run.

What is understood is a Python file with LLaDA's function `generate(model, prompt, steps=, gen_length=,
block_length=, temperature=, mask_id=)`, which many later loops kept. Such loops append to a prompt
and know nothing behind it, so ours is given no more than that either.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from frostline.errors import UsageError
from frostline.evals import quality
from frostline.evals.clock import Clock
from frostline.evals.holes import Case
from frostline.evals.loops import Fill, Filled, ours, without_lengths
from frostline.models.backend import Backend, Look
from frostline.wire import messages as wire

SLOTS = 16
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Window:
    ids: Tensor
    slots: Tensor


class _AsTheirs(nn.Module):
    """Our model as their loops call one: tokens in, logits of each token's own place out."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self._backend = backend
        self.device = backend.device
        self.config = SimpleNamespace(model_type="llada", vocab_size=backend.vocabulary)

    @torch.inference_mode()
    def forward(self, input_ids: Tensor, **_: Any) -> SimpleNamespace:
        rows = []
        for ids in input_ids:
            window = _Window(ids, torch.arange(len(ids), device=ids.device))
            run = self._backend.open(window)
            (logits,) = self._backend.look([Look(run, ids, whole=True)])
            rows.append(logits.index_fill(-1, self._banned(logits), -torch.inf))
        return SimpleNamespace(logits=torch.stack(rows))

    def _banned(self, logits: Tensor) -> Tensor:
        spec = self._backend.spec
        return torch.tensor([*spec.banned, spec.noise.id], device=logits.device)


def rows(
    backend: Backend, path: Path, cases: Sequence[Case], clock: Clock, say: Say
) -> list[quality.Row]:
    """Return the figures of their loop and ours on what stands before each hole, 16 slots each.

    Raises:
        UsageError: the file holds no such function, or it does not run.
    """
    generate = _generate_of(path)
    fixed = without_lengths(backend)

    def theirs(case: Case) -> Filled:
        before = torch.tensor([backend.tokens.encode(case.before)[-_room(backend) :]])
        began = clock()
        try:
            out = generate(
                _AsTheirs(fixed),
                before.to(backend.device),
                steps=SLOTS,
                gen_length=SLOTS,
                block_length=SLOTS,
                temperature=0.0,
                mask_id=backend.spec.noise.id,
            )
        except Exception as error:
            raise UsageError(
                f"{path.name} does not run: {type(error).__name__}: {error}"
            ) from error
        # Some of them return the number of passes as well.
        tokens, forwards = out if isinstance(out, tuple) else (out, SLOTS)
        text = backend.tokens.spell(tokens[0, before.shape[1] :].tolist()).decode(errors="replace")
        return Filled(
            text, clock() - began, wire.Figures(steps=SLOTS, forwards=int(forwards), tokens=SLOTS)
        )

    def told(done: int, of: int) -> None:
        say(f"{path.name}: hole {done} of {of}")

    bare = [Case(one.path, one.before, one.text, "", one.tokens) for one in cases]
    ways: dict[str, Fill] = {
        f"{path.name}, text before only": theirs,
        "Frostline, text before only": ours(fixed, clock, room=lambda _: SLOTS),
    }
    found = quality.filled(bare, ways, told)
    return list(quality.rows(bare, found, backend.tokens.encode))


def _room(backend: Backend) -> int:
    return backend.spec.max_context - SLOTS - 1


def _generate_of(path: Path) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location("frostline_reference", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(
            f"{path} is no Python file; --reference takes one with a generate function"
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(
            f"{path.name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    generate: Callable[..., Any] | None = getattr(module, "generate", None)
    wanted = {"steps", "gen_length", "block_length", "temperature", "mask_id"}
    if generate is None or not wanted <= set(inspect.signature(generate).parameters):
        raise UsageError(
            f"{path.name} has no generate(model, prompt, steps, gen_length, block_length, temperature, "
            "mask_id), which is what can be compared"
        )
    return generate

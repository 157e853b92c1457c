"""How often a model fills held-out holes with what stood there. One command, one table.

The loop is the product's own (frostline.decoding), with the settings that it has when nobody sets any.
Holes lie in a line and get no line end; with the true length they get no pad either. Not as in use:
fp32, and every look is at the whole window, where the worker keeps some of the last one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frostline.decoding.choose import ORDERS, Choice
from frostline.decoding.constrain import Rules
from frostline.decoding.loop import Denoising
from frostline.decoding.schedule import SCHEDULES
from frostline.models.tokens import Tokens
from frostline.train import passes
from frostline.train.cases import BUCKETS, ROOM, Case
from frostline.train.folder import read_weights
from frostline.train.held import Asked
from frostline.train.objective import MASK, PAD, SPECIALS
from frostline.train.sources import Say
from frostline.wire.messages import Decoding

TOGETHER = 8


@dataclass(frozen=True, slots=True)
class Score:
    """Right ones among so many, for one question."""

    question: str
    right: int
    asked: int

    @property
    def share(self) -> float:
        return self.right / self.asked if self.asked else 0.0


@dataclass(frozen=True, slots=True)
class Figures:
    """A model's scores."""

    model: str
    scores: tuple[Score, ...]
    seconds: float


def figures(folder: Path, asked: Asked, seed: int, device: torch.device, say: Say) -> Figures:
    """Return the scores of the model in `folder` on the holes that are asked.

    Drawn holes depend on the seed and the tokenizer alone, so models that share one are asked the same.
    """
    started = time.monotonic()
    tokens = Tokens(folder)
    model = passes.load(folder / "config.json", read_weights(folder)).to(device).eval()
    scores = [masked(model, asked, tokens, seed, device)]
    for bucket in BUCKETS:
        cases = asked.cases(bucket, tokens)
        scores.append(at_once(model, bucket, cases, tokens, device))
        for room, name in ((0, "true length"), (ROOM, f"room of {ROOM}")):
            say(f"{folder.name}: {bucket}, {name}, {len(cases)} holes")
            right = sum(
                text == case.text.encode()
                for some in _groups(cases, tokens, room)
                for text, case in zip(fill(model, some, tokens, room, device), some, strict=True)
            )
            scores.append(Score(f"{bucket}, exact, {name}", right, len(cases)))
    return Figures(str(folder), tuple(scores), time.monotonic() - started)


@torch.inference_mode()
def masked(model: Any, windows: Asked, tokens: Tokens, seed: int, device: torch.device) -> Score:
    """Return the share of tokens found when half of a window's are masked."""
    rng = np.random.default_rng((seed, 99))
    right = asked = 0
    for ids in windows.windows(tokens, rng):
        true = torch.tensor(ids, device=device)
        hidden = torch.from_numpy(rng.random(len(ids)) < 0.5).to(device) & (true >= SPECIALS)
        hidden[0] = False
        where = hidden.nonzero().flatten()
        out = passes.hidden(model, torch.where(hidden, MASK, true)[None], causal=False)[0]
        found = _allowed(model.lm_head(out[where - 1])).argmax(-1)
        right += int((found == true[where]).sum())
        asked += len(where)
    return Score("tokens right, 50 % masked anywhere", right, asked)


@torch.inference_mode()
def at_once(
    model: Any, name: str, cases: list[Case], tokens: Tokens, device: torch.device
) -> Score:
    """Return the share of tokens that the first step gets right, the hole all masked."""
    right = asked = 0
    for some in _groups(cases, tokens, 0):
        ids, slots = _canvas(some, tokens, 0, device)
        true = torch.tensor([tokens.encode(case.text) for case in some], device=device)
        logits = _allowed(_slot_logits(model, ids, slots))
        right += int((logits.argmax(-1) == true).sum())
        asked += true.numel()
    return Score(f"{name}, tokens right in the first step", right, asked)


@torch.inference_mode()
def fill(
    model: Any, cases: Sequence[Case], tokens: Tokens, room: int, device: torch.device
) -> list[bytes]:
    """Return what the model puts into each hole. All cases have holes of one size at one place."""
    ids, slots = _canvas(cases, tokens, room, device)
    rules = _rules(tokens, len(slots), bool(room), device)
    drafts = [_denoising(row, rules) for row in ids[:, slots]]
    # Filled holes leave the batch: most texts are far shorter than their room.
    while live := [row for row, draft in enumerate(drafts) if not draft.done]:
        for row in live:
            ids[row, slots] = drafts[row].question()
        for row, logits in zip(live, _slot_logits(model, ids[live], slots), strict=True):
            drafts[row].answer(logits)
    return [tokens.spell(_text(draft.now.tokens.tolist())) for draft in drafts]


def _denoising(slots: Tensor, rules: Rules) -> Denoising:
    """Return the product's loop over one hole, as it is set when nobody sets anything."""
    usual = Decoding()
    return Denoising(
        slots,
        torch.ones_like(slots, dtype=torch.bool),
        torch.full_like(slots, MASK),
        rules,
        Choice(ORDERS[usual.order], usual.threshold, usual.entropy_bound),
        SCHEDULES[usual.schedule],
        usual.steps or len(slots),
    )


def _rules(tokens: Tokens, slots: int, padded: bool, device: torch.device) -> Rules:
    spelled = [b"" if one < SPECIALS else text for one, text in enumerate(tokens.spelled)]
    banned = torch.tensor([not text for text in spelled], device=device)
    banned[PAD] = not padded
    return Rules(
        gap=torch.zeros(slots, dtype=torch.long, device=device),
        banned=banned,
        line_ends=torch.tensor([b"\n" in text for text in spelled], device=device),
        multiline=[False],
        required=[b""],
        token_bytes=spelled,
        pad=PAD if padded else None,
    )


def _text(row: list[int]) -> list[int]:
    return row[: row.index(PAD)] if PAD in row else row


def _allowed(logits: Tensor) -> Tensor:
    """Return logits with no special token but the pad."""
    logits = logits.float().clone()
    pad = logits[..., PAD].clone()
    logits[..., :SPECIALS] = float("-inf")
    logits[..., PAD] = pad
    return logits


def _slot_logits(model: Any, ids: Tensor, slots: Tensor) -> Tensor:
    out = passes.hidden(model, ids, causal=False)
    result: Tensor = model.lm_head(out[:, slots - 1])
    return result


def _canvas(
    cases: Sequence[Case], tokens: Tokens, room: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    size = room or len(tokens.encode(cases[0].text))
    rows = [[*case.before, *[MASK] * size, *case.after] for case in cases]
    start = len(cases[0].before)
    return torch.tensor(rows, device=device), torch.arange(start, start + size, device=device)


def _groups(cases: list[Case], tokens: Tokens, room: int) -> Iterator[list[Case]]:
    """Yield cases that can be run together: holes of one size at one place."""
    groups: dict[tuple[int, int], list[Case]] = {}
    for case in cases:
        size = room or len(tokens.encode(case.text))
        groups.setdefault((len(case.before), size), []).append(case)
    for group in groups.values():
        for at in range(0, len(group), TOGETHER):
            yield group[at : at + TOGETHER]


def table(all_figures: Sequence[Figures]) -> str:
    """Return the scores as a Markdown table, one column a model."""
    head = ["held-out holes", "asked", *(Path(one.model).name for one in all_figures)]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for scores in zip(*(one.scores for one in all_figures), strict=True):
        cells = [f"{score.share:.3f}" for score in scores]
        lines.append(f"| {scores[0].question} | {scores[0].asked} | " + " | ".join(cells) + " |")
    return "\n".join(lines)

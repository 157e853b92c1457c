"""How often a model fills held-out holes with what stood there. One command, one table.

Greedy, one token a step, the surest first, fp32, no line ends, as all these holes lie in a line. With
room to spare the rules are the product's (frostline.decoding): a pad settles only when all left of
it has, and text only within four slots of the first open one.
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
from torch.nn import functional

from frostline.models.tokens import Tokens
from frostline.train import passes
from frostline.train.cases import BUCKETS, ROOM, Case, drawn
from frostline.train.objective import BEGIN, MASK, PAD, SPECIALS
from frostline.train.sources import File, Say

WINDOW = 256
TOGETHER = 8
REACH = 4


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


def figures(
    folder: Path, files: list[File], count: int, seed: int, device: torch.device, say: Say
) -> Figures:
    """Return the scores of the model in `folder` on `count` holes of each kind.

    Holes depend on the seed and the tokenizer alone, so models that share one are asked the same.
    """
    started = time.monotonic()
    tokens = Tokens(folder)
    model = passes.load(folder / "config.json", folder / "model.safetensors").to(device).eval()
    scores = [*masked(model, files, count, tokens, seed, device)]
    for bucket in BUCKETS:
        cases = drawn(files, bucket, count, WINDOW, tokens, seed)
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
def masked(
    model: Any, files: list[File], count: int, tokens: Tokens, seed: int, device: torch.device
) -> Iterator[Score]:
    """Yield the share of tokens found when half of a window's are masked."""
    rng = np.random.default_rng((seed, 99))
    right = asked = 0
    for ids in _windows(files, count // 2, tokens, rng):
        true = torch.tensor(ids, device=device)
        hidden = torch.from_numpy(rng.random(len(ids)) < 0.5).to(device) & (true >= SPECIALS)
        hidden[0] = False
        where = hidden.nonzero().flatten()
        out = passes.hidden(model, torch.where(hidden, MASK, true)[None], causal=False)[0]
        found = _allowed(model.lm_head(out[where - 1])).argmax(-1)
        right += int((found == true[where]).sum())
        asked += len(where)
    yield Score("tokens right, 50 % masked anywhere", right, asked)


def _windows(
    files: list[File], count: int, tokens: Tokens, rng: np.random.Generator
) -> Iterator[list[int]]:
    packages = sorted({file.package for file in files})
    given = 0
    while given < count:
        choice = [file for file in files if file.package == packages[given % len(packages)]]
        file = choice[int(rng.integers(len(choice)))]
        ids = [BEGIN, *tokens.encode(file.text)]
        if len(ids) > WINDOW:
            start = int(rng.integers(len(ids) - WINDOW))
            yield ids[start : start + WINDOW]
            given += 1


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
    never = _line_ends(tokens, device) if room else [*_line_ends(tokens, device), PAD]
    open = torch.ones((len(cases), len(slots)), dtype=torch.bool, device=device)
    while open.any():
        # Filled holes leave the batch: most texts are far shorter than their room.
        live = open.any(1).nonzero().flatten()
        logits = _allowed(_slot_logits(model, ids[live], slots))
        logits[..., never] = float("-inf")
        found, open[live] = settled(ids[live][:, slots], open[live], logits, bool(room))
        ids[live[:, None], slots] = found
    return [tokens.spell(_text(row)) for row in ids[:, slots].tolist()]


def settled(now: Tensor, open: Tensor, logits: Tensor, padded: bool) -> tuple[Tensor, Tensor]:
    """Return (rows, slots) tokens and open slots after one more token of each row has settled."""
    if padded:
        text = (~open & (now != PAD)).long()
        # No end before settled text.
        logits[..., PAD].masked_fill_(text.flip(1).cumsum(1).flip(1) > 0, float("-inf"))
    surest, proposed = functional.softmax(logits, -1).max(-1)
    place = open.cumsum(1)
    ready = open
    if padded:
        first = open & (place == 1)
        places = torch.arange(open.shape[1], device=open.device)
        ready = open & (first | (proposed != PAD))
        ready &= places - first.long().argmax(1, keepdim=True) < REACH
    pick = surest.masked_fill(~ready, -1.0).argmax(1, keepdim=True)
    chosen = proposed.gather(1, pick)
    now = now.scatter(1, pick, chosen)
    open = open.scatter(1, pick, False)
    if padded:
        behind = torch.arange(open.shape[1], device=open.device) >= pick
        closing = (chosen == PAD) & behind
        now, open = torch.where(closing, PAD, now), open & ~closing
    return now, open


def _line_ends(tokens: Tokens, device: torch.device) -> list[int]:
    return [one for one, spelled in enumerate(tokens.spelled) if b"\n" in spelled]


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

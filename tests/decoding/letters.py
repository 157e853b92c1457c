"""A model that one can read: for each slot, letters and how likely it finds them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from frostline.decoding import loop
from frostline.decoding.choose import ORDERS, Choice
from frostline.decoding.constrain import Rules
from frostline.decoding.schedule import SCHEDULES

# Shown as: ░ the mask, · the pad. Tokens of several letters and halves of a character are there too.
NAMES = ["░", "·", "a", "b", "c", "d", "\n", "ab", "abc", "Ã", "©", "x"]
SPELLED = [b"", b"", b"a", b"b", b"c", b"d", b"\n", b"ab", b"abc", b"\xc3", b"\xa9", b"x"]
MASK, PAD = 0, 1

Likely = Mapping[str, float]
Predict = Callable[[Tensor], Tensor]


def ids(text: str) -> Tensor:
    """Return the tokens of a canvas, one letter each."""
    return torch.tensor([NAMES.index(letter) for letter in text])


def logits(*slots: Likely) -> Tensor:
    """Return (slots, vocabulary): what is named as likely as said, the others share what is left."""
    rows = []
    for likely in slots:
        others = (1 - sum(likely.values())) / (len(NAMES) - len(likely))
        rows.append([math.log(max(likely.get(name, others), 1e-9)) for name in NAMES])
    return torch.tensor(rows)


def says(*slots: Likely) -> Predict:
    """Return a model that thinks the same in every step."""
    return lambda _: logits(*slots)


def rules(
    gaps: str,
    *,
    pad: bool = False,
    one_line: str = "",
    required: Mapping[str, bytes] | None = None,
    reach: int = 4,
) -> Rules:
    """Return rules for slots of gaps, such as "AAAB"; without `pad` a pad is no text either."""
    names = sorted(set(gaps))
    banned = torch.tensor([not spelled for spelled in SPELLED])
    banned[PAD] = not pad
    return Rules(
        gap=torch.tensor([names.index(name) for name in gaps]),
        banned=banned,
        line_ends=torch.tensor([b"\n" in spelled for spelled in SPELLED]),
        multiline=[name not in one_line for name in names],
        required=[(required or {}).get(name, b"") for name in names],
        token_bytes=SPELLED,
        pad=PAD if pad else None,
        reach=reach,
    )


def denoise(
    predict: Predict,
    canvas: str = "░░░░",
    given: Rules | None = None,
    *,
    order: str = "confidence",
    threshold: float | None = None,
    entropy_bound: float | None = None,
    schedule: str = "linear",
    steps: int | None = None,
    temperature: float = 0.0,
    seed: int = 0,
) -> list[loop.Step]:
    """Return the steps from a canvas, where ░ is open."""
    tokens = ids(canvas)
    open = tokens == MASK
    run = loop.Denoising(
        tokens,
        open,
        torch.full_like(tokens, MASK),
        given or rules("A" * len(canvas)),
        Choice(ORDERS[order], threshold, entropy_bound),
        SCHEDULES[schedule],
        steps or int(open.sum()),
        temperature=temperature,
        generator=torch.Generator().manual_seed(seed),
    )
    return list(loop.denoise(run, predict))


def shown(steps: Sequence[loop.Step]) -> list[str]:
    """Return what is settled after each step, as a canvas."""
    return [
        "".join(
            "░" if open else NAMES[token]
            for token, open in zip(step.tokens.tolist(), step.open.tolist(), strict=True)
        )
        for step in steps
    ]

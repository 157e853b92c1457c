"""A request to the autoregressive peer: its gaps one after another, each refined until it is settled.

Where a masked model denoises all gaps jointly, this one fills them in reading order: each sees what
the ones before it became, and nothing of those behind. The old text of a gap, or n-grams of what is
around it, is where the refinement starts; what comes out is the same from any start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor

from frostline.decoding.constrain import IMPOSSIBLE
from frostline.decoding.jacobi import AHEAD, Guess, NGrams, Possible, jacobi, nothing
from frostline.decoding.loop import Step
from frostline.models.causal import CausalBackend, CausalRun
from frostline.wire import messages as wire
from frostline.worker.canvas import Canvas, GapSlots

# What a gap is refined from: its old text and n-grams, n-grams of what is around it, or nothing.
Start = Literal["old", "ngrams", "nothing"]


class Limits:
    """What the slots of a gap may become, by the tokens of one model.

    Args:
        spelling: the bytes of each id.
        banned: (vocabulary,) ids that are never text.
        ends: ids that say that the text is over; the first stands for all of them.
    """

    def __init__(self, spelling: Sequence[bytes], banned: Tensor, ends: Sequence[int]) -> None:
        self._spelling = spelling
        self._ends = torch.tensor(ends, device=banned.device)
        self._never = banned.clone()
        self._never[self._ends] = True
        line_ends = torch.tensor([b"\n" in one for one in spelling], device=banned.device)
        blank = torch.tensor([not one.strip() for one in spelling], device=banned.device)
        # In a text of one line a line end is where it is over. A token that has text before the line
        # end is not taken: the model writes that text as a token of its own, then ends.
        self._over = line_ends & blank & ~banned
        self._never_in_line = self._never | line_ends

    def of(self, gap: GapSlots) -> Possible:
        """Return what the slots of `gap` may become."""
        never = self._never if gap.multiline else self._never_in_line
        ends = self._ends
        if not gap.multiline:
            ends = torch.cat([ends, self._over.nonzero().flatten()])

        def possible(logits: Tensor, tokens: Tensor, first: int) -> Tensor:
            over = logits[:, ends].amax(-1)
            logits = logits.masked_fill(never, IMPOSSIBLE)
            logits[:, self._ends[0]] = over
            return self._begun(logits, tokens, first, gap.required) if gap.required else logits

        return possible

    def _begun(self, logits: Tensor, tokens: Tensor, first: int, required: bytes) -> Tensor:
        """Return the logits with only what spells on in the rows that have not spelled `required`."""
        for row in range(len(logits)):
            spelled = b"".join(self._spelling[one] for one in tokens[: first + row].tolist())
            if len(spelled) >= len(required) or not required.startswith(spelled):
                # Spelled, or a guess that does not spell it and so will not stand.
                break
            left = required[len(spelled) :]
            fits = [
                bool(one) and (one.startswith(left) or left.startswith(one))
                for one in self._spelling
            ]
            logits[row].masked_fill_(~torch.tensor(fits, device=logits.device), IMPOSSIBLE)
        return logits


def drafted(
    canvas: Canvas,
    run: CausalRun,
    backend: CausalBackend,
    limits: Limits,
    decoding: wire.Decoding,
    start: Start = "old",
    blind: int | None = None,
) -> Iterator[Step]:
    """Yield the whole canvas after each pass.

    Args:
        blind: slots to look at in a pass that has no guess to check. By default a processor, to
            which each slot is work, looks at one, unless there is old text to compare with.

    Raises:
        NothingFits: there is a slot that no token may stand in.
    """
    tokens = backend.noise(len(canvas.slots))
    open = torch.ones(len(tokens), dtype=torch.bool, device=tokens.device)
    confidence = torch.zeros(len(tokens), device=tokens.device)
    taken = 0
    for number, gap in enumerate(canvas.gaps):
        if not gap.count:
            continue
        filling = run.at(number, tokens)
        before, behind = run.around(number, tokens)
        costly = backend.device.type == "cpu" and not (start == "old" and gap.old)
        steps = jacobi(
            begun(gap, backend, start),
            filling.score,
            limits.of(gap),
            backend.fim.ends[0],
            guesses(gap, before, behind, start),
            blind=blind or (1 if costly else AHEAD),
            temperature=decoding.temperature,
            seed=decoding.seed * 31 + number,
        )
        for step in steps:
            tokens[gap.slots], open[gap.slots] = step.tokens, step.open
            confidence[gap.slots] = step.confidence
            drift = torch.where(open, float("inf"), 0.0)
            taken += 1
            yield Step(taken, len(tokens), tokens.clone(), open.clone(), confidence.clone(), drift)


def begun(gap: GapSlots, backend: CausalBackend, start: Start) -> Tensor:
    """Return (slots,) tokens to start from: the gap's old text, or ends of a text, which say nothing."""
    tokens = backend.noise(gap.count)
    old = gap.old[: gap.count] if start == "old" else ()
    tokens[: len(old)] = torch.tensor(old, dtype=torch.long, device=tokens.device)
    return tokens


def guesses(gap: GapSlots, before: list[int], behind: list[int], start: Start) -> Guess:
    """Return guesses by the old text of a gap, then by the text around it."""
    if start == "nothing":
        return nothing
    around = [before, behind]
    return NGrams([gap.old, *around] if start == "old" else around, before)


def limits(backend: CausalBackend) -> Limits:
    """Return what slots may become with this model."""
    spelling = [*backend.tokens.spelled]
    spelling += [b""] * (backend.vocabulary - len(spelling))
    # Special tokens spell nothing, whatever a vocabulary calls them.
    for one in (*backend.spec.banned, *backend.fim.ends):
        spelling[one] = b""
    banned = torch.tensor([not one or unprintable(one) for one in spelling])
    return Limits(spelling, banned.to(backend.device), backend.fim.ends)


def unprintable(spelled: bytes) -> bool:
    """Return True for control characters, which are never wanted, CR among them: gaps are written with LF."""
    return any((byte < 0x20 and byte not in b"\t\n") or byte == 0x7F for byte in spelled)

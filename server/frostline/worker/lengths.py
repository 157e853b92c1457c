"""Which gaps may still grow or shrink, for models that say so with tokens (DreamOn)."""

from __future__ import annotations

from frostline.decoding import length
from frostline.decoding.length import Resized
from frostline.decoding.loop import Step
from frostline.models.spec import ModelSpec
from frostline.worker.canvas import Canvas

# Slots that a gap grows to at most, as DreamOn was trained and evaluated.
MOST = 64


class Lengths:
    """Carries out what one run's slots say of its length, and says when they may not say it.

    A gap expands until it has `MOST` slots or the window is full, and never after it has deleted: so
    neither growing nor taking turns goes on for ever. In the last step of a budget nothing grows. A
    gap whose length the user set keeps it.
    """

    def __init__(self, spec: ModelSpec, canvas: Canvas) -> None:
        self._spec = spec
        self._shrunk = [gap.fixed for gap in canvas.gaps]
        self._fixed = [gap.fixed for gap in canvas.gaps]

    def forbidden(self, canvas: Canvas, *, last: bool = False) -> list[list[int]]:
        """Return for each gap the tokens that it may not have now; empty for models without such."""
        if not self._spec.resizing:
            return []
        expand, delete = self._spec.resizing
        # Every slot may divide in one step.
        full = last or len(canvas.ids) + len(canvas.slots) > self._spec.max_context
        return [
            [expand] * (full or self._shrunk[number] or gap.count >= MOST)
            + [delete] * self._fixed[number]
            for number, gap in enumerate(canvas.gaps)
        ]

    def resized(self, step: Step, canvas: Canvas) -> Resized | None:
        """Return the slots that a step leads to, or None where they stay as they are."""
        if not self._spec.resizing:
            return None
        expand, delete = self._spec.resizing
        gap = canvas.gap.to(step.tokens.device)
        for number in gap[~step.open & (step.tokens == delete)].unique().tolist():
            self._shrunk[number] = True
        return length.resized(step.tokens, step.open, gap, expand, delete)

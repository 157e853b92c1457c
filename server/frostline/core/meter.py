"""The numbers kept for a session (DESIGN, section 7), from what was shown and when.

Times are handed in, in seconds of any one clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from frostline.core.provisional import Draft, PieceState


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a session took, as a user sees it.

    Attributes:
        time_to_first_useful_block_ms: until the first stable text that is in the final text.
        time_to_complete_ms: until the last step.
        revision_churn: characters shown as decided and later replaced, for each final character.
        provisional_updates: drafts shown.
    """

    time_to_first_useful_block_ms: float | None
    time_to_complete_ms: float
    revision_churn: float
    provisional_updates: int


@dataclass(slots=True)
class Meter:
    """Collects what was shown; `numbers` sums it up at the end. `last` is when something was shown last."""

    started: float
    last: float | None = None
    _stable: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)
    _decided: tuple[str, ...] = ()
    _replaced: int = 0
    _updates: int = 0

    def saw(self, now: float, drafts: Sequence[Draft]) -> None:
        """Record one shown update."""
        self._updates += 1
        self.last = now
        self._stable.append((now, tuple(_in_state(draft, PieceState.STABLE) for draft in drafts)))
        decided = tuple(_decided(draft) for draft in drafts)
        for old, new in zip(self._decided, decided, strict=False):
            self._replaced += len(old) - _kept(old, new)
        self._decided = decided

    def numbers(self, now: float, final: Sequence[Draft]) -> Numbers:
        """Return the numbers, given the final drafts at `now`."""
        texts = tuple(draft.text for draft in final)
        first = next((when for when, shown in self._stable if _useful(shown, texts)), None)
        replaced = self._replaced + sum(
            len(old) - _kept(old, new) for old, new in zip(self._decided, texts, strict=False)
        )
        characters = sum(map(len, texts))
        return Numbers(
            None if first is None else (first - self.started) * 1000,
            (now - self.started) * 1000,
            replaced / characters if characters else 0.0,
            self._updates,
        )


def _in_state(draft: Draft, state: PieceState) -> str:
    return "\0".join(piece.text for piece in draft.pieces if piece.state is state)


def _decided(draft: Draft) -> str:
    return "".join(piece.text for piece in draft.pieces if piece.state is not PieceState.OPEN)


def _kept(old: str, new: str) -> int:
    """Return how many characters of `old` are still in `new` in the same order, found greedily."""
    position, kept = 0, 0
    for letter in old:
        found = new.find(letter, position)
        if found >= 0:
            kept += 1
            position = found + 1
    return kept


def _useful(shown: tuple[str, ...], final: tuple[str, ...]) -> bool:
    blocks = (block for text in shown for block in text.split("\0") if block.strip())
    return any(any(block in text for text in final) for block in blocks)

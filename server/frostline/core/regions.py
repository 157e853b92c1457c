"""What is frozen and what is open.

`Regions` tile a whole document: every code point is in exactly one `Frozen` or one `Hole`, so a gap
or an overlap cannot be built. A hole itself is made of parts: gaps that are denoised, and pinned
text that is already decided and is to the model what frozen text is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from frostline.core.text import Span

_LAST_WORD = re.compile(r"\w*\Z")


@dataclass(frozen=True, slots=True)
class Frozen:
    """Text that stays as it is, byte for byte."""

    span: Span


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of a hole that the model fills.

    Attributes:
        old: the text that stands there now, from which a rewrite may start.
        room: how many slots to give it; None lets the worker choose.
    """

    old: str = ""
    room: int | None = None


@dataclass(frozen=True, slots=True)
class Pinned:
    """A part of a hole that is decided: part of the draft, and frozen for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Hole:
    """A stretch of the document that is to be replaced.

    Attributes:
        span: what is replaced; empty for a cursor.
        multiline: whether the new text may hold line ends.
        indent: leading white space of the hole's own line, which its further lines keep at least.
        required: the start of a word left of the cursor that the new text has to continue. It stays
            in the document, outside `span`; the worker gives it back to the model to complete.
        parts: gaps and pinned text that make up the draft, in order.
        taken: the start of the draft that is in the document already, ahead of `span`: accepted in
            part, or typed by the user exactly as it was drafted.
    """

    span: Span
    multiline: bool = False
    indent: str = ""
    required: str = ""
    parts: tuple[Gap | Pinned, ...] = (Gap(),)
    taken: str = ""

    @property
    def gaps(self) -> int:
        """How many gaps the hole has."""
        return sum(isinstance(part, Gap) for part in self.parts)

    def anew(self, *parts: Gap | Pinned) -> Hole:
        """Return the hole as it is asked for again, behind what was taken of it: nothing is taken of that.

        The word to go on with is then the one that the taken text ends in, and none ahead of a pin.
        """
        required = self.behind(self.taken).required if isinstance(parts[0], Gap) else ""
        return replace(self, parts=parts, taken="", required=required)

    def behind(self, text: str) -> Hole:
        """Return the hole with the word to go on with as it is when `text` stands between the two."""
        if not self.required or not text:
            return self
        word = _LAST_WORD.search(self.required + text)
        return replace(self, required=word.group() if word else "")


@dataclass(frozen=True, slots=True)
class Regions:
    """Frozen text and holes that tile a document of `length` code points, in order."""

    length: int
    parts: tuple[Frozen | Hole, ...]

    def __post_init__(self) -> None:
        reached = 0
        for part in self.parts:
            if part.span.start != reached:
                raise ValueError(f"regions leave a gap or overlap at {reached}")
            reached = part.span.end
        if reached != self.length:
            raise ValueError(f"regions end at {reached}, the text at {self.length}")

    @classmethod
    def tile(cls, length: int, holes: Iterable[Hole]) -> Regions:
        """Return the tiling in which everything but `holes` is frozen.

        Raises:
            ValueError: holes overlap, touch the same place twice, or leave the text.
        """
        parts: list[Frozen | Hole] = []
        reached = 0
        for hole in sorted(holes, key=lambda hole: hole.span):
            if parts and hole.span.start == reached and isinstance(parts[-1], Hole):
                raise ValueError(f"two holes touch at {reached}; make them one")
            if hole.span.start > reached or not parts:
                parts.append(Frozen(Span(reached, hole.span.start)))
            parts.append(hole)
            reached = hole.span.end
        parts.append(Frozen(Span(reached, length)))
        return cls(length, tuple(parts))

    @property
    def holes(self) -> tuple[Hole, ...]:
        return tuple(part for part in self.parts if isinstance(part, Hole))

    @property
    def frozen(self) -> tuple[Span, ...]:
        return tuple(part.span for part in self.parts if isinstance(part, Frozen))

    def with_holes(self, holes: Iterable[Hole]) -> Regions:
        """Return the same document with these holes instead."""
        return Regions.tile(self.length, holes)

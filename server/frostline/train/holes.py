"""Where holes are cut in a window of text, so that they look like what an editor asks to fill.

A window is a piece of a file and need not parse, so places are found line by line with a small
lexer; brackets inside a hole are balanced wherever the line's are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Rng = np.random.Generator

_ATOM = re.compile(
    r"""[A-Za-z_]\w*|\d[\w.]*|(?:"[^"\n]*"|'[^'\n]*')|[-+*/%@&|^<>=!]=|\*\*|//|->|:=|\S"""
)
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True, order=True)
class Cut:
    """A hole: code points from start to end, end excluded; start may equal end."""

    start: int
    end: int


def cut(text: str, share: float, rng: Rng) -> list[Cut]:
    """Return holes in `text`, in order and apart, that take about this share of its characters."""
    lines = code_lines(text)
    taken: list[Cut] = []
    left = share * len(text)
    for _ in range(24):
        if left <= 0 or not lines:
            break
        kind = _KINDS[int(rng.choice(len(_KINDS), p=_SHARES))]
        hole = kind(text, lines, rng)
        if hole is None or hole.start < 1 or any(_touch(hole, other) for other in taken):
            continue
        taken.append(hole)
        left -= max(hole.end - hole.start, 4)
    return sorted(taken)


def _touch(one: Cut, other: Cut) -> bool:
    return one.start <= other.end and other.start <= one.end


def code_lines(text: str) -> list[Cut]:
    """Return the lines that hold something, each from after its indentation to its line end.

    The first line and the last one are left out: a window may begin and end anywhere in them.
    """
    lines = []
    start = text.find("\n") + 1
    while 0 < start < len(text):
        end = text.find("\n", start)
        if end < 0:
            break
        content = text[start:end]
        if bare := content.strip():
            first = start + content.index(bare[0])
            lines.append(Cut(first, first + len(bare)))
        start = end + 1
    return lines


def atoms(text: str, line: Cut) -> list[Cut]:
    """Return the words, numbers, strings and signs of a line."""
    return [Cut(*match.span()) for match in _ATOM.finditer(text, line.start, line.end)]


def _any(lines: list[Cut], rng: Rng) -> Cut:
    return lines[int(rng.integers(len(lines)))]


def expression(text: str, lines: list[Cut], rng: Rng) -> Cut | None:
    """Return an operand with some of what hangs on it: name, call, attribute, index, literal."""
    parts = atoms(text, _any(lines, rng))
    starts = [at for at, part in enumerate(parts) if _begins(text[part.start])]
    if not starts:
        return None
    first = starts[int(rng.integers(len(starts)))]
    ends = _ends(text, parts, first)
    if not ends:
        return None
    last = ends[int(rng.integers(len(ends)))]
    return Cut(parts[first].start, parts[last].end)


def _begins(letter: str) -> bool:
    return letter.isalnum() or letter in "_\"'([{"


def _ends(text: str, parts: list[Cut], first: int) -> list[int]:
    """Return the atoms at which an expression that begins at `first` may end."""
    ends: list[int] = []
    depth = 0
    for at in range(first, min(first + 16, len(parts))):
        sign = text[parts[at].start]
        if sign in _OPEN and parts[at].end - parts[at].start == 1:
            depth += 1
        elif sign in _CLOSE:
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and sign in ",:;":
            break
        if depth == 0 and (sign in _CLOSE or _begins(sign)):
            ends.append(at)
    return ends


def rest_of_line(text: str, lines: list[Cut], rng: Rng) -> Cut | None:
    """Return what stands behind a place in a line, which mostly lies between two atoms."""
    line = _any(lines, rng)
    parts = atoms(text, line)
    if rng.random() < 0.2:
        return Cut(int(rng.integers(line.start, line.end)), line.end)
    if len(parts) < 2:
        return None
    before = parts[int(rng.integers(len(parts) - 1))]
    after = before.end
    # Editors ask with the blank typed as often as without it.
    if text[after] == " " and rng.random() < 0.7:
        after += 1
    return Cut(after, line.end)


def whole_line(text: str, lines: list[Cut], rng: Rng) -> Cut | None:
    """Return a line from after its indentation."""
    return _any(lines, rng)


def several_lines(text: str, lines: list[Cut], rng: Rng) -> Cut | None:
    """Return two to five lines."""
    at = int(rng.integers(len(lines)))
    last = at + int(rng.integers(1, 5))
    return Cut(lines[at].start, lines[last].end) if last < len(lines) else None


def span(text: str, lines: list[Cut], rng: Rng) -> Cut | None:
    """Return up to 40 characters anywhere, or none at all: a person may put the cursor there."""
    start = int(rng.integers(1, len(text)))
    length = 0 if rng.random() < 0.15 else int(rng.integers(1, 40))
    return Cut(start, min(start + length, len(text) - 1)) if start < len(text) - 1 else None


_Kind = Callable[[str, list[Cut], Rng], Cut | None]
_KINDS: tuple[_Kind, ...] = (expression, rest_of_line, whole_line, several_lines, span)
_SHARES = (0.38, 0.25, 0.2, 0.09, 0.08)

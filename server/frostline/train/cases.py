"""Held-out holes: cut in packages that no one trained on, the same for the same seed."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from frostline.models.tokens import Tokens
from frostline.train.holes import Cut, Rng, atoms
from frostline.train.objective import BEGIN
from frostline.train.sources import File

Bucket = Literal["expression", "rest of line", "whole line"]

BUCKETS: tuple[Bucket, ...] = ("expression", "rest of line", "whole line")

# The room that a hole gets when its length is not known.
ROOM = 16


class Hole(msgspec.Struct, frozen=True):
    """A hole and what is around it, as text.

    Attributes:
        text: what stood there.
        at_start: whether the file begins where `before` does.
    """

    bucket: Bucket
    package: str
    path: str
    at_start: bool
    before: str
    text: str
    after: str


@dataclass(frozen=True, slots=True)
class Case:
    """A hole with what is around it in a window, in tokens; `text` is what stood there."""

    bucket: Bucket
    package: str
    path: str
    before: tuple[int, ...]
    text: str
    after: tuple[int, ...]


def drawn(
    files: list[File], bucket: Bucket, count: int, window: int, tokens: Tokens, seed: int
) -> list[Case]:
    """Return so many cases, spread evenly over the packages, no two in one line.

    Context is cut so that it fills the window beside a hole of `ROOM` slots; two thirds stand before.
    """
    return [case for _, case in _drawn(files, bucket, count, window, tokens, seed)]


def holes(
    files: list[File], bucket: Bucket, count: int, window: int, tokens: Tokens, seed: int
) -> list[Hole]:
    """Return what `drawn` does, as text."""
    return [hole for hole, _ in _drawn(files, bucket, count, window, tokens, seed)]


def _drawn(
    files: list[File], bucket: Bucket, count: int, window: int, tokens: Tokens, seed: int
) -> list[tuple[Hole, Case]]:
    rng = np.random.default_rng((seed, BUCKETS.index(bucket)))
    packages = sorted({file.package for file in files})
    of = {name: [file for file in files if file.package == name] for name in packages}
    found: dict[tuple[str, str, int], tuple[Hole, Case]] = {}
    for attempt in range(count * 60):
        if len(found) == count:
            break
        choice = of[packages[attempt % len(packages)]]
        file = choice[int(rng.integers(len(choice)))]
        place = _place(file.text, bucket, tokens, rng)
        if place is None:
            continue
        key = (file.package, file.path, file.text.count("\n", 0, place.start))
        hole = _hole(file, bucket, place, window)
        case = case_of(hole, window, tokens)
        if case is not None:
            found.setdefault(key, (hole, case))
    return list(found.values())


def _hole(file: File, bucket: Bucket, place: Cut, window: int) -> Hole:
    # Far more text than the window holds, and less than would take long to encode.
    reach = window * 12
    first = max(place.start - reach, 0)
    before, after = file.text[first : place.start], file.text[place.end : place.end + reach]
    text = file.text[place.start : place.end]
    return Hole(bucket, file.package, file.path, first == 0, before, text, after)


def case_of(hole: Hole, window: int, tokens: Tokens) -> Case | None:
    """Return the hole in a window of so many tokens, or None where there is not enough around it."""
    before, after = tokens.encode(hole.before), tokens.encode(hole.after)
    if hole.at_start:
        before = [BEGIN, *before]
    room = window - ROOM
    ahead = min(len(after), max(room // 3, room - len(before)))
    before, after = before[-(room - ahead) :], after[:ahead]
    if len(before) + len(after) != room or len(before) < 1:
        return None
    return Case(hole.bucket, hole.package, hole.path, tuple(before), hole.text, tuple(after))


def _place(text: str, bucket: Bucket, tokens: Tokens, rng: Rng) -> Cut | None:
    places = _PLACES[bucket](text, rng)
    if not places:
        return None
    place = places[int(rng.integers(len(places)))]
    slots = len(tokens.encode(text[place.start : place.end]))
    most = 4 if bucket == "expression" else ROOM - 1
    return place if 1 <= slots <= most else None


def expressions(text: str, rng: Rng) -> list[Cut]:
    """Return the expressions of a file that lie in one line, docstrings not among them."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    starts = _line_starts(text)
    statements = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    inside = {
        id(part)
        for one in ast.walk(tree)
        if isinstance(one, ast.JoinedStr)
        for part in ast.walk(one)
        if part is not one
    }
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or id(node) in inside or node.lineno != node.end_lineno:
            continue
        if isinstance(node, ast.Constant) and id(node) in statements:
            continue
        start = starts[node.lineno - 1]
        line = text[start : starts[node.lineno]]
        # The tree counts bytes; where those are not characters the line is passed over.
        if line.isascii() and node.end_col_offset is not None:
            found.append(Cut(start + node.col_offset, start + node.end_col_offset))
    return found


def whole_lines(text: str, rng: Rng) -> list[Cut]:
    """Return the lines that hold code, each from after its indentation to its line end."""
    starts = _line_starts(text)
    found = []
    for number in sorted(_code_lines(text)):
        line = text[starts[number - 1] : starts[number]].rstrip()
        bare = line.lstrip()
        first = starts[number - 1] + len(line) - len(bare)
        found.append(Cut(first, first + len(bare)))
    return found


def rests(text: str, rng: Rng) -> list[Cut]:
    """Return for each line of code what stands behind some word or sign of it, blank excluded."""
    found = []
    for line in whole_lines(text, rng):
        parts = atoms(text, line)
        if len(parts) > 1:
            next_one = parts[int(rng.integers(1, len(parts)))]
            found.append(Cut(next_one.start, line.end))
    return found


def _code_lines(text: str) -> set[int]:
    """Return the numbers of lines that begin with code: not in a string, not a comment."""
    lines: set[int] = set()
    inside: set[int] = set()
    for token in _tokens(text):
        first, last = token.start[0], token.end[0]
        if token.type == tokenize.STRING or "FSTRING" in tokenize.tok_name[token.type]:
            inside.update(range(first + 1, last + 1))
            if token.line[: token.start[1]].strip() == "":
                inside.add(first)
        elif token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER):
            lines.add(first)
    return lines - inside


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


_PLACES: dict[Bucket, Callable[[str, Rng], list[Cut]]] = {
    "expression": expressions,
    "rest of line": rests,
    "whole line": whole_lines,
}

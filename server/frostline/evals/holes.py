"""Holes for measuring: statements and ends of lines of Python files, the same for the same seed."""

from __future__ import annotations

import ast
import importlib.metadata
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from frostline.errors import UsageError
from frostline.wire.messages import Gap, Text

# Installed with the worker or with what its tests need, and not among what the embedded model was
# trained on.
PACKAGES = (
    "click",
    "filelock",
    "hypothesis",
    "markdown-it-py",
    "mpmath",
    "numpy",
    "pathspec",
    "platformdirs",
    "psutil",
    "pygls",
    "sympy",
    "tomlkit",
    "tqdm",
)
LEAST_TOKENS, MOST_TOKENS = 4, 48
MOST_BYTES = 200_000
# Characters of context that a server sends for each token of a model's window.
PER_TOKEN = 4
Counts = Callable[[str], int]
_WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Case:
    """A hole: the text before, what stood in it, and the text behind."""

    path: str
    before: str
    text: str
    after: str
    tokens: int

    @property
    def multiline(self) -> bool:
        """Whether what stood there goes over a line end."""
        return "\n" in self.text

    @property
    def indent(self) -> str:
        """How the hole's own line begins."""
        line = self.before[self.before.rfind("\n") + 1 :]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def segments(self, context: int, room: int | None = None) -> tuple[Text | Gap, ...]:
        """Return what a worker is asked: `context` characters around the hole, as a server sends, and a gap."""
        gap = Gap(0, multiline=self.multiline, room=room, indent=self.indent)
        before, after = self.before[-(context * 2 // 3) :], self.after[: context // 3]
        return tuple(part for part in (Text(before), gap, Text(after)) if part != Text(""))


def installed() -> list[list[Path]]:
    """Return the Python files of each of `PACKAGES` that is installed, tests left out."""
    found = []
    for name in PACKAGES:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = [
            Path(str(file.locate()))
            for file in files
            if file.suffix == ".py" and not {"tests", "test", "testing"} & set(file.parts)
        ]
        found.append(
            sorted(path for path in paths if path.is_file() and path.stat().st_size < MOST_BYTES)
        )
    return [paths for paths in found if paths]


def in_folder(folder: Path) -> list[list[Path]]:
    """Return the Python files under `folder`, as those of one package.

    Raises:
        UsageError: there are none.
    """
    found = sorted(path for path in folder.rglob("*.py") if path.stat().st_size < MOST_BYTES)
    if not found:
        raise UsageError(f"there are no Python files under {folder} to cut holes from")
    return [found]


def cut(
    packages: Sequence[Sequence[Path]],
    count: int,
    tokens: Counts,
    *,
    seed: int = 0,
    least: int = LEAST_TOKENS,
    most: int = MOST_TOKENS,
) -> list[Case]:
    """Return `count` holes of `least` to `most` tokens, as many from each package as from another.

    Half of them are whole statements, half the rest of a line from where a word or a sign begins.
    """
    draw = random.Random(seed)
    cases: dict[tuple[str, int], Case] = {}
    for _ in range(count * 50):
        if len(cases) == count or not packages:
            break
        case = _one(draw.choice(draw.choice(packages)), draw, tokens, least, most)
        if case is not None:
            cases.setdefault((case.path, len(case.before)), case)
    return list(cases.values())


def _one(path: Path, draw: random.Random, tokens: Counts, least: int, most: int) -> Case | None:
    try:
        text = path.read_bytes().decode().replace("\r\n", "\n")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return None
    places = _places(tree, text)
    if not places:
        return None
    start, end = places[draw.randrange(len(places))]
    if draw.random() < 0.5 and "\n" not in text[start:end]:
        # The rest of a line: what is asked for while somebody types.
        start += draw.choice([found.start() for found in _WORDS.finditer(text[start:end])])
    hole = text[start:end]
    count = tokens(hole)
    if hole != hole.strip() or not least <= count <= most:
        return None
    return Case(str(path), text[:start], hole, text[end:], count)


def _places(tree: ast.Module, text: str) -> list[tuple[int, int]]:
    """Return the spans of all statements but docstrings, from their indentation to their line's end."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    places = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or node.end_lineno is None or node.end_col_offset is None:
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        first, last = starts[node.lineno - 1], starts[node.end_lineno - 1]
        line = text[last : starts[node.end_lineno] - 1]
        # Columns count bytes; where those are not characters the statement is passed over.
        if not line.isascii() or not text[first : starts[node.lineno]].isascii():
            continue
        if line[node.end_col_offset :].strip() or text[first : first + node.col_offset].strip():
            continue
        places.append((first + node.col_offset, last + node.end_col_offset))
    return places

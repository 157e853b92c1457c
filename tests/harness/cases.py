"""Case files: a test is a page that a person reads.

    Prose first: why the case exists.

    -- before.py --             the file; «» mark the holes, ^L stands for a form feed
    -- steps --                 one line a step: the holes' drafts, ¦ between holes, ░ still open,
                                ⏎ for a line end, ∅ for no text; a blank line starts the next run (a second try)
    -- do --                    what happens then, one line each; `accept` when there is no section:
                                accept [line|word|hole|stable|all] [anyway|early], type L:C[-L:C] "x",
                paste L:C TIMES "x", undo (the last edit of the text), redo,
                                another L:C-L:C "x" L:C-L:C "y" (an edit of another server, in one piece),
                                hold (no run comes to an end any more), pin START-END, retry, back,
                                reject, close, rename (the file)
    -- after.py --              the file at the end, or
    -- refused --               the code of the refusal

A page under `refused/` is for the server alone: what it does is asked of a server with these `-- settings --` (JSON),
for a file of this `-- name --`. Its `do` has

    ask [L:C-L:C ...]           a draft for the marked holes, or for these; `ask nowhere` for none
    accept [first|nobody's]     the last draft that was asked for, the first, or one that there never was
    lose N                      the worker dies after N steps of each run (first line)

`-- before.py (crlf) --` gives the file that line end (crlf, cr), and `(bom)` a byte order mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frostline.context.grammar import language_of
from frostline.core.text import Position, Span

FOLDER = Path(__file__).parents[2] / "fixtures" / "edits"
REFUSED = FOLDER / "refused"
_PLACED = re.compile(r'(?P<place>\d\S*) (?P<text>"(?:[^"\\]|\\.)*")')
_SECTION = re.compile(r"^-- (?P<name>[\w.]+)(?: \((?P<how>[\w, ]+)\))? --\n", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """One page.

    Attributes:
        prose: why it exists.
        text: the file before, without marks.
        holes: the marked spans.
        runs: for each run its steps, each with one draft for every hole.
        do: what happens after the runs.
        after: the file at the end, or None.
        refused: the refusal's code, or None.
        settings: of the server, by the names that an editor gives them.
        file: the file's name.
    """

    name: str
    prose: str
    language: str
    text: str
    holes: tuple[Span, ...]
    runs: tuple[tuple[tuple[str, ...], ...], ...]
    do: tuple[str, ...]
    after: str | None
    refused: str | None
    settings: dict[str, Any]
    file: str


def load(folder: Path = FOLDER) -> list[Case]:
    """Return all cases of a folder, by name."""
    return [read(path) for path in sorted(folder.glob("*.txt"))]


def read(path: Path) -> Case:
    """Return one case."""
    parts = _SECTION.split(path.read_text(encoding="utf-8"))
    prose, sections = parts[0].strip(), parts[1:]
    named = {
        name: (how or "", body)
        for name, how, body in zip(sections[::3], sections[1::3], sections[2::3], strict=True)
    }
    before = next(name for name in named if name.startswith("before."))
    after = next((name for name in named if name.startswith("after.")), None)
    how, body = named[before]
    text, holes = marked(_as_file(body, how))
    return Case(
        name=path.stem,
        prose=prose,
        language=language_of(before),
        text=text,
        holes=tuple(holes),
        runs=_runs(named.get("steps", ("", ""))[1]),
        do=tuple(named.get("do", ("", "accept\n"))[1].split("\n"))[:-1],
        after=_as_file(named[after][1], how) if after else None,
        refused=named["refused"][1].strip() if "refused" in named else None,
        settings=json.loads(named.get("settings", ("", "{}"))[1]),
        file=named.get("name", ("", "case.py"))[1].strip(),
    )


def placed(rest: str) -> Iterator[tuple[Position, Position, str]]:
    """Yield the edits of a line: start, end and text, all of the text before the first."""
    for match in _PLACED.finditer(rest):
        ends = [Position(*map(int, end.split(":"))) for end in match["place"].split("-")]
        yield ends[0], ends[-1], json.loads(match["text"])


def marked(text: str) -> tuple[str, list[Span]]:
    """Return the text without «» marks, and the spans between them."""
    plain, spans, start = "", [], 0
    for part in text.replace("»", "«").split("«"):
        plain += part
        spans.append(Span(start, len(plain)))
        start = len(plain)
    return plain, spans[1::2]


def _as_file(body: str, how: str) -> str:
    text = body.replace("^L", "\f")
    if "no final newline" in how:
        text = text.removesuffix("\n")
    if "crlf" in how:
        text = text.replace("\n", "\r\n")
    elif "cr" in how.split(", "):
        text = text.replace("\n", "\r")
    return "\ufeff" + text if "bom" in how else text


def _runs(body: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    runs: list[list[tuple[str, ...]]] = [[]]
    for line in body.split("\n")[:-1]:
        if not line:
            runs.append([])
            continue
        runs[-1].append(
            tuple(draft.replace("⏎", "\n").replace("∅", "") for draft in line.split("¦"))
        )
    return tuple(tuple(run) for run in runs)

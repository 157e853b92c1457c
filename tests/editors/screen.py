"""What a Neovim draws: the cells of its screen, each with its text and the highlight groups on it.

Neovim sends its screen to an attached UI as `redraw` notifications; this keeps them as a grid. It
knows only the events that a single grid needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


def end_of(data: bytes | bytearray, at: int = 0) -> int | None:
    """Return where the MessagePack value that starts at `at` ends, or None while it is not whole."""
    if at >= len(data):
        return None
    kind = data[at]
    at += 1
    if kind < 0x80 or kind >= 0xE0 or kind in (0xC0, 0xC2, 0xC3):
        return at
    if kind < 0xA0:
        return _end_of_many(data, at, (kind & 0x0F) * (1 if kind >= 0x90 else 2))
    if kind < 0xC0:
        return _within(data, at + (kind & 0x1F))
    if kind in _FIXED:
        return _within(data, at + _FIXED[kind])
    width, unit = _SIZED[kind]
    if at + width > len(data):
        return None
    size = int.from_bytes(data[at : at + width], "big")
    if unit:
        return _within(data, at + width + size + unit - 1)
    return _end_of_many(data, at + width, size * (2 if kind >= 0xDE else 1))


# Numbers and extensions of a fixed size, in bytes.
_FIXED = dict(enumerate((4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17), start=0xCA))
# The width of a size, and what it counts: bytes (1), bytes behind a type (2), or values (0).
_SIZED = {
    **dict(enumerate(((1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (4, 2)), start=0xC4)),
    **dict(enumerate(((1, 1), (2, 1), (4, 1), (2, 0), (4, 0), (2, 0), (4, 0)), start=0xD9)),
}


def _within(data: bytes | bytearray, end: int) -> int | None:
    return end if end <= len(data) else None


def _end_of_many(data: bytes | bytearray, at: int, count: int) -> int | None:
    for _ in range(count):
        next_one = end_of(data, at)
        if next_one is None:
            return None
        at = next_one
    return at


@dataclass
class Look:
    """How cells are drawn: colours as 0xRRGGBB or None, attributes, and the groups it is made of."""

    foreground: int | None = None
    background: int | None = None
    attributes: frozenset[str] = frozenset()
    groups: tuple[str, ...] = ()


@dataclass
class Screen:
    """The grid of one UI.

    Attributes:
        cells: for each row its cells, as text and the number of a look.
        looks: by number.
        colours: the default foreground and background.
        cursor: row and column.
        film: every picture that was shown since it was set to a list, and none while it is None.
    """

    cells: list[list[tuple[str, int]]] = field(default_factory=list)
    looks: dict[int, Look] = field(default_factory=lambda: {0: Look()})
    colours: tuple[int, int] = (0xFFFFFF, 0x000000)
    cursor: tuple[int, int] = (0, 0)
    film: list[Screen] | None = None

    def take(self, events: list[Any]) -> None:
        """Take the events of one redraw notification."""
        for name, *calls in events:
            handler = getattr(self, f"_{name}", None)
            if handler is not None:
                for call in calls:
                    handler(*call)

    def row(self, number: int) -> str:
        """Return the text of a row."""
        return "".join(text for text, _ in self.cells[number]).rstrip()

    @property
    def text(self) -> list[str]:
        """The text of every row."""
        return [self.row(number) for number in range(len(self.cells))]

    def runs(self, number: int) -> list[tuple[str, Look]]:
        """Return a row as runs of cells that look the same."""
        result: list[tuple[str, int]] = []
        for text, look in self.cells[number]:
            if result and result[-1][1] == look:
                result[-1] = (result[-1][0] + text, look)
            else:
                result.append((text, look))
        return [(text, self.looks.get(look, Look())) for text, look in result]

    def groups(self, number: int, prefix: str) -> list[tuple[str, str]]:
        """Return the runs of a row on which a group of this prefix lies, with that group."""
        found = []
        for text, look in self.runs(number):
            names = [name for name in look.groups if name.startswith(prefix)]
            if names:
                found.append((text, names[-1]))
        return found

    def find(self, text: str) -> int:
        """Return the first row that has this text, or -1."""
        return next((row for row, line in enumerate(self.text) if text in line), -1)

    # --- events; the names are Neovim's ---------------------------------------------------------

    def _flush(self) -> None:
        if self.film is not None:
            self.film.append(replace(self, cells=[list(row) for row in self.cells], film=None))

    def _grid_resize(self, _: int, width: int, height: int) -> None:
        self.cells = [[(" ", 0)] * width for _ in range(height)]

    def _grid_clear(self, _: int) -> None:
        self.cells = [[(" ", 0)] * len(row) for row in self.cells]

    def _grid_cursor_goto(self, _: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _grid_line(self, _: int, row: int, start: int, cells: list[Any], *__: Any) -> None:
        look = 0
        for text, *more in cells:
            look = more[0] if more else look
            for _ in range(more[1] if len(more) > 1 else 1):
                self.cells[row][start] = (text, look)
                start += 1

    def _grid_scroll(
        self, _: int, top: int, bottom: int, left: int, right: int, rows: int, *__: Any
    ) -> None:
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            self.cells[row][left:right] = self.cells[row + rows][left:right]

    def _default_colors_set(self, foreground: int, background: int, *_: Any) -> None:
        self.colours = (foreground, background)

    def _hl_attr_define(
        self, number: int, rgb: dict[str, Any], _: Any, info: list[dict[str, Any]]
    ) -> None:
        names = (part.get("hi_name") or part.get("ui_name") or "" for part in info)
        attributes = {name for name, value in rgb.items() if value is True}
        foreground, background = rgb.get("foreground"), rgb.get("background")
        if "reverse" in attributes:
            foreground, background = (
                background if background is not None else self.colours[1],
                foreground if foreground is not None else self.colours[0],
            )
        self.looks[number] = Look(foreground, background, frozenset(attributes), tuple(names))

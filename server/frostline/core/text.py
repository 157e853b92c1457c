"""Documents, positions and edits.

A document is kept as its lines, each with its own end, because editors count in lines: an edit then
costs two slices of a tuple and never a scan of the file. Text is counted in code points everywhere
but in `Position`, whose `character` is in the units that were negotiated with the editor.

Deliberately absent: URIs as paths, files, normalisation of any kind. What came in goes out.
"""

from __future__ import annotations

import enum
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

# LSP ends a line at these three and nowhere else; str.splitlines() also breaks at form feeds,
# U+0085, U+2028 and others, which would move every edit below one.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Encoding(enum.Enum):
    """The unit in which an editor counts characters within a line."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place as an editor names it: line from 0, character in negotiated units."""

    line: int
    character: int


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Code points `start` up to, not including, `end`."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"a span cannot run from {self.start} to {self.end}")

    def __len__(self) -> int:
        return self.end - self.start

    def overlaps(self, other: Span) -> bool:
        """True where the two share a code point, or one lies inside the other."""
        if self.start == self.end or other.start == other.end:
            return other.start < self.start < other.end or self.start < other.start < self.end
        return self.start < other.end and other.start < self.end

    def moved(self, by: int) -> Span:
        return Span(self.start + by, self.end + by)


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace `span` by `text`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """One content change of an editor; without a range it is the whole new text."""

    range: tuple[Position, Position] | None
    text: str


def split_lines(text: str) -> tuple[str, ...]:
    """Return the lines of `text`, each with its end; the last one has none and may be empty."""
    lines = _LINE.findall(text)
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return tuple(lines)


def without_end(line: str) -> str:
    """Return the line without its line end."""
    return line.rstrip("\r\n")


def line_end(line: str) -> str:
    """Return the line's end: CRLF, CR, LF, or nothing."""
    return line[len(without_end(line)) :]


def _joined_surrogates(text: str) -> str:
    # Two halves of a pair can arrive in two changes; a string holds them as two code points until
    # they are joined, and every count after them would be off by one.
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def units(text: str, encoding: Encoding) -> int:
    """Return how many units of `encoding` the text takes."""
    if encoding is Encoding.UTF32 or text.isascii():
        return len(text)
    if encoding is Encoding.UTF8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(character > "\uffff" for character in text)


def code_points(line: str, character: int, encoding: Encoding) -> int:
    """Return how many code points of `line` lie before `character` units.

    Beyond the line's end means its end; inside a character means before it (LSP 3.18, Position).
    """
    body = without_end(line)
    if character <= 0:
        return 0
    if encoding is Encoding.UTF32 or body.isascii():
        return min(character, len(body))
    if encoding is Encoding.UTF8:
        data = body.encode("utf-8", "surrogatepass")
        if character >= len(data):
            return len(body)
        while data[character] & 0xC0 == 0x80:
            character -= 1
        return len(data[:character].decode("utf-8", "surrogatepass"))
    if max(body) <= "\uffff":
        return min(character, len(body))
    taken = 0
    for index, letter in enumerate(body):
        taken += 2 if letter > "\uffff" else 1
        if taken > character:
            return index
    return len(body)


class Document:
    """One version of one file. A change makes a new Document; this one never changes.

    Attributes:
        uri: the editor's name for the file, never opened here.
        version: the editor's version number.
        language: LSP language id, such as "python".
        lines: the text as lines, each with its own end.
    """

    __slots__ = ("_starts", "_text", "language", "lines", "uri", "version")

    def __init__(self, uri: str, version: int, language: str, lines: tuple[str, ...]) -> None:
        self.uri = uri
        self.version = version
        self.language = language
        self.lines = lines
        self._text: str | None = None
        self._starts: list[int] = [0]

    @classmethod
    def of(cls, uri: str, version: int, language: str, text: str) -> Document:
        """Return the document with this text."""
        return cls(uri, version, language, split_lines(_joined_surrogates(text)))

    @property
    def text(self) -> str:
        """The whole text, joined once per version."""
        if self._text is None:
            self._text = "".join(self.lines)
        return self._text

    def __len__(self) -> int:
        return self.line_start(len(self.lines) - 1) + len(self.lines[-1])

    def __repr__(self) -> str:
        return f"Document({self.uri!r}, version={self.version}, {len(self.lines)} lines)"

    def line_start(self, line: int) -> int:
        """Return the offset of the line's first code point; counted as far as asked for."""
        starts = self._starts
        if len(starts) <= line:
            known = len(starts) - 1
            lengths = map(len, self.lines[known:line])
            starts.extend(islice(accumulate(lengths, initial=starts[known]), 1, None))
        return starts[line]

    def line_at(self, offset: int) -> int:
        """Return the line that holds `offset`."""
        while self._starts[-1] <= offset and len(self._starts) < len(self.lines):
            self.line_start(min(len(self._starts) * 2, len(self.lines) - 1))
        return bisect_right(self._starts, offset) - 1

    def offset(self, position: Position, encoding: Encoding) -> int:
        """Return the offset of an editor's position; one outside the text means the nearest in it."""
        if position.line < 0:
            return 0
        if position.line >= len(self.lines):
            return len(self)
        line = self.lines[position.line]
        return self.line_start(position.line) + code_points(line, position.character, encoding)

    def position(self, offset: int, encoding: Encoding) -> Position:
        """Return the editor's position of an offset between 0 and the text's length."""
        line = self.line_at(offset)
        before = self.lines[line][: offset - self.line_start(line)]
        return Position(line, units(before, encoding))

    def slice(self, span: Span) -> str:
        """Return the text of a span."""
        return self.text[span.start : span.end]

    def changed(self, version: int, changes: Sequence[Change], encoding: Encoding) -> Document:
        """Return the document after an editor's changes, applied one after the other."""
        document = self
        for change in changes:
            document = document._changed_once(version, change, encoding)
        return document if changes else self._with_lines(version, self.lines, kept=len(self.lines))

    def edits_of(self, changes: Sequence[Change], encoding: Encoding) -> tuple[TextEdit, ...]:
        """Return the changes as edits, each in terms of the text that the one before it left."""
        document, edits = self, []
        for change in changes:
            edits.append(document._edit_of(change, encoding))
            document = document._changed_once(document.version, change, encoding)
        return tuple(edits)

    def _edit_of(self, change: Change, encoding: Encoding) -> TextEdit:
        if change.range is None:
            return difference(self.text, change.text)
        first, second = (self.offset(place, encoding) for place in change.range)
        return TextEdit(Span(min(first, second), max(first, second)), change.text)

    def _changed_once(self, version: int, change: Change, encoding: Encoding) -> Document:
        if change.range is None:
            return Document.of(self.uri, version, self.language, change.text)
        (first, before), (last, after) = (self._cut(place, encoding) for place in change.range)
        if (last, after) < (first, before):
            (first, before), (last, after) = (last, after), (first, before)
        # One line more on both sides: a new "\n" may complete a "\r" there, and the other way round.
        top, bottom = max(first - 1, 0), min(last + 2, len(self.lines))
        head = "".join(self.lines[top:first]) + self.lines[first][:before]
        tail = self.lines[last][after:] + "".join(self.lines[last + 1 : bottom])
        middle = split_lines(_joined_surrogates(head + change.text + tail))
        if bottom < len(self.lines) and middle[-1] == "":
            middle = middle[:-1]
        lines = self.lines[:top] + middle + self.lines[bottom:]
        return self._with_lines(version, lines, kept=top)

    def _cut(self, position: Position, encoding: Encoding) -> tuple[int, int]:
        if position.line < 0:
            return 0, 0
        if position.line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        line = self.lines[position.line]
        return position.line, code_points(line, position.character, encoding)

    def _with_lines(self, version: int, lines: tuple[str, ...], kept: int) -> Document:
        document = Document(self.uri, version, self.language, lines)
        # Lines above the change start where they did.
        document._starts = self._starts[: max(kept, 0) + 1]
        return document

    def replaced(self, version: int, edits: Iterable[TextEdit]) -> Document:
        """Return the document after edits that all refer to this version and do not overlap."""
        return Document.of(self.uri, version, self.language, apply(self.text, edits))


def difference(old: str, new: str) -> TextEdit:
    """Return one edit that makes `new` of `old`: what lies between their shared start and end."""
    most = min(len(old), len(new))
    head = _shared(most, lambda length: old[:length] == new[:length])
    most -= head
    tail = _shared(most, lambda length: old[len(old) - length :] == new[len(new) - length :])
    return TextEdit(Span(head, len(old) - tail), new[head : len(new) - tail])


def _shared(most: int, same: Callable[[int], bool]) -> int:
    """Return the largest length up to `most` that is `same`, which holds for all smaller ones."""
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        if same(middle):
            low = middle
        else:
            most = middle - 1
    return low


def apply(text: str, edits: Iterable[TextEdit]) -> str:
    """Return `text` after `edits`, which refer to it as it is and must not overlap.

    Raises:
        ValueError: two edits share a place, or one lies outside the text.
    """
    pieces: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: edit.span):
        if edit.span.start < done or edit.span.end > len(text):
            raise ValueError(f"an edit at {edit.span} overlaps another or leaves the text")
        pieces += (text[done : edit.span.start], edit.text)
        done = edit.span.end
    pieces.append(text[done:])
    return "".join(pieces)

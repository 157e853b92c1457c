"""The container of GGUF files (llama.cpp's format, versions 2 and 3): metadata, and where tensors lie.

Read with the standard library, so that a file can be looked at without torch. Every count and
offset is checked against the file's size before it is believed. Nothing in a file is executed; the
chat template that some carry is not looked at.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frostline.errors import ModelUnusable

MAGIC = b"GGUF"
# Value types of metadata: 0 to 7 and 10 to 12 are numbers, written little-endian.
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?"} | {
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
# Type of a tensor -> its name, and how many elements of it are how many bytes.
KINDS: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    30: ("BF16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor of a file: `size` bytes from `start` on, its shape with the innermost dimension last."""

    shape: tuple[int, ...]
    kind: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Gguf:
    """What a file says before its tensors begin."""

    path: Path
    meta: dict[str, Any] = field(repr=False)
    tensors: dict[str, Entry] = field(repr=False)

    def wanted(self, key: str, kind: type) -> Any:
        """Return the metadata under `key`.

        Raises:
            ModelUnusable: it is not there, or of another type.
        """
        value = self.meta.get(key)
        if not isinstance(value, kind):
            raise ModelUnusable(f"{self.path} does not say its {key}, so it cannot be run")
        return value


def read(path: Path) -> Gguf:
    """Return the metadata and the tensors' places of the file at `path`.

    Raises:
        ModelUnusable: it is no such file, torn, or holds tensors of a kind that cannot be read.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(path, data).whole()
    except (OSError, ValueError) as error:  # mmap says ValueError of an empty file
        raise ModelUnusable(f"{path} cannot be read ({error}); fetch it again") from error


class _Reader:
    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path, self._data, self._place = path, data, 0

    def whole(self) -> Gguf:
        if self._bytes(4) != MAGIC:
            raise ModelUnusable(f"{self._path} is no GGUF file")
        version = self._number("<I")
        if version not in (2, 3):
            raise ModelUnusable(
                f"{self._path} is GGUF version {version}; versions 2 and 3 can be read"
            )
        tensors, values = self._number("<Q"), self._number("<Q")
        # Each takes 12 bytes at the least: a count beyond that is a torn or a made-up file.
        if (tensors + values) * 12 > len(self._data):
            raise self._torn()
        meta = {}
        for _ in range(values):
            key = self._string()
            meta[key] = self._value(self._number("<I"))
        places = [self._entry() for _ in range(tensors)]
        alignment = meta.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment <= 0:
            raise self._torn()
        begin = math.ceil(self._place / alignment) * alignment
        return Gguf(self._path, meta, dict(self._placed(begin, *place) for place in places))

    def _entry(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        dimensions = self._number("<I")
        if dimensions > 8:
            raise self._torn()
        shape = tuple(self._number("<Q") for _ in range(dimensions))
        return name, shape[::-1], self._number("<I"), self._number("<Q")

    def _placed(
        self, begin: int, name: str, shape: tuple[int, ...], kind: int, offset: int
    ) -> tuple[str, Entry]:
        if kind not in KINDS:
            known = ", ".join(sorted(name for name, _, _ in KINDS.values()))
            raise ModelUnusable(
                f"{self._path} holds tensors of a kind ({kind}) that cannot be read; these can: {known}"
            )
        word, elements, size = KINDS[kind]
        count = math.prod(shape)
        if count % elements or (shape and shape[-1] % elements):
            raise self._torn()
        entry = Entry(shape, word, begin + offset, count // elements * size)
        if entry.start + entry.size > len(self._data):
            raise ModelUnusable(f"{self._path} is cut short at {name}; fetch it again")
        return name, entry

    def _value(self, kind: int) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            raise self._torn()
        inner, count = self._number("<I"), self._number("<Q")
        if count > len(self._data):
            raise self._torn()
        if inner in _NUMBERS:
            form = _NUMBERS[inner]
            data = self._bytes(count * struct.calcsize(form))
            return list(struct.unpack(f"<{count}{form[1]}", data))
        if inner != _STRING:
            # Arrays of arrays are in the format and in no model file.
            raise self._torn()
        return [self._string() for _ in range(count)]

    def _string(self) -> str:
        # What is no UTF-8 is kept apart from everything else, and is no token that anybody names.
        return self._bytes(self._number("<Q")).decode(errors="surrogateescape")

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _bytes(self, count: int) -> bytes:
        end = self._place + count
        if end > len(self._data):
            raise self._torn()
        found = self._data[self._place : end]
        self._place = end
        return found

    def _torn(self) -> ModelUnusable:
        return ModelUnusable(f"{self._path} is damaged or cut short; fetch it again")

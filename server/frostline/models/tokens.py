"""Text to tokens and tokens to bytes, without loss or not at all.

Frozen text is only ever encoded. Text of a hole is put together from the bytes of its tokens, so a
character that two tokens share is never a replacement character.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from frostline.errors import ModelUnusable

# A model that changes any of these on the way through would change somebody's file.
_PROBES = (
    "def f(a, b):\n    return a  # ok\n",
    "\tif x:\n\t\ty = 'a\tb'\n",
    "line one\r\nline two\r\n",
    "\f\nclass A:\n\n\n    pass\n",
    "naïve café e\u0301 — 日本語 😀\u200d😀",
    "\ufeffimport os\n",
    "a\u2028b\u0085c\x0bd",
    "<|mask|><|end|><s></s>[MASK]<pad>",
    "  leading and trailing  ",
)
# The bytes that occur in UTF-8.
_UTF8 = {*range(0xC0), *range(0xC2, 0xF5)}


class Tokens:
    """A byte-level tokenizer whose special tokens are never found in text."""

    def __init__(self, folder: Path) -> None:
        path = folder / "tokenizer.json"
        try:
            self._tokenizer = Tokenizer.from_str(json.dumps(_plain(json.loads(path.read_bytes()))))
        except OSError as error:
            raise ModelUnusable(
                f"{folder} has no tokenizer.json; the model cannot be used"
            ) from error
        except Exception as error:  # the library raises bare Exception for a bad description
            raise ModelUnusable(f"{path} is no tokenizer that can be read: {error}") from error
        self._check()

    @property
    def size(self) -> int:
        """How many ids there are."""
        return len(self.spelled)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`; what looks like a special token in it is plain text."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def spell(self, ids: list[int]) -> bytes:
        """Return the bytes of these ids; ids without a spelling give none."""
        spelled = self.spelled
        return b"".join(spelled[one] for one in ids if one < len(spelled))

    @cached_property
    def spelled(self) -> list[bytes]:
        """The bytes of each id."""
        letters = _byte_letters()
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=False)
        result = [b""] * (max(vocabulary.values()) + 1)
        for token, one in vocabulary.items():
            if all(letter in letters for letter in token):
                result[one] = bytes(letters[letter] for letter in token)
        return result

    def _check(self) -> None:
        for probe in _PROBES:
            if self.spell(self.encode(probe)) != probe.encode():
                raise ModelUnusable(
                    f"this model's tokenizer does not give back {probe!r} as it was; "
                    "it could not keep your text intact, so it is not used"
                )
        if missing := _UTF8 - {spelled[0] for spelled in self.spelled if len(spelled) == 1}:
            raise ModelUnusable(
                f"this model's tokenizer has no token for {len(missing)} of the bytes that text is "
                "made of; it could not keep your text intact, so it is not used"
            )


def _plain(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a tokenizer that knows text only, and takes any length of it.

    Special tokens are ids that a spec names, not strings that a file may happen to spell.
    """
    return {**description, "added_tokens": [], "truncation": None, "padding": None}


def _byte_letters() -> dict[str, int]:
    """Return the alphabet of byte-level BPE (GPT-2): printable letters, one for each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    letters.update({chr(0x100 + number): byte for number, byte in enumerate(others)})
    return letters

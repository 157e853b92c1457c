"""Text to tokens and tokens to bytes, without loss or not at all.

Frozen text is only ever encoded. Text of a hole is put together from the bytes of its tokens, so a
character that two tokens share is never a replacement character.
"""

from __future__ import annotations

import json
import re
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, pre_tokenizers
from tokenizers.models import BPE
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from frostline.errors import ModelUnusable
from frostline.models.published import Published

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
# SentencePiece's sign for a space, which a text may hold as itself; and its bytes.
_SPACE = "\u2581"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
# Tokenizers published as vocab.json and merges.txt alone that cut text as Qwen2's does.
_AS_QWEN2 = ("Qwen2Tokenizer", "Qwen2TokenizerFast", "DreamTokenizer")


class Tokens:
    """A tokenizer that has every byte, and whose special tokens are never found in text.

    Two forms: byte-level BPE (GPT-2 and on), and BPE with byte fallback (SentencePiece's, as Gemma
    has it), where a space is written as U+2581.

    Args:
        description: what tokenizer.json would say, for a model that has its tokenizer elsewhere.
    """

    def __init__(self, folder: Path, description: dict[str, Any] | None = None) -> None:
        path = folder / "tokenizer.json"
        try:
            if description is None:
                description = (
                    json.loads(path.read_bytes()) if path.is_file() else _from_merges(folder)
                )
            self._pieces = bool(description["model"].get("byte_fallback"))
            self._tokenizer = Tokenizer.from_str(json.dumps(_plain(description)))
        except ModelUnusable:
            raise
        except OSError as error:
            raise ModelUnusable(f"{path} cannot be read: {error}") from error
        except Exception as error:  # the library raises bare Exception for a bad description
            raise ModelUnusable(f"{path} is no tokenizer that can be read: {error}") from error
        self._check()

    @property
    def size(self) -> int:
        """How many ids there are."""
        return len(self.spelled)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`; what looks like a special token in it is plain text."""
        if not self._pieces or _SPACE not in text:
            return self._encode(text)
        # As itself the sign for a space would come back as one, so it is spelled in bytes.
        between = self._bytes_of(_SPACE)
        first, *others = text.split(_SPACE)
        return self._encode(first) + [
            one for other in others for one in (*between, *self._encode(other))
        ]

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _bytes_of(self, text: str) -> list[int]:
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=False)
        return [vocabulary[f"<0x{byte:02X}>"] for byte in text.encode()]

    def spell(self, ids: list[int]) -> bytes:
        """Return the bytes of these ids; ids without a spelling give none."""
        spelled = self.spelled
        return b"".join(spelled[one] for one in ids if one < len(spelled))

    @cached_property
    def spelled(self) -> list[bytes]:
        """The bytes of each id."""
        spelling = _spelling_of_pieces if self._pieces else _spelling_of_letters
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=False)
        result = [b""] * (max(vocabulary.values()) + 1)
        for token, one in vocabulary.items():
            result[one] = spelling(token)
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

    Special tokens are ids that a spec names, not strings that a file may happen to spell. Accents
    are not put together (Unicode's NFC, which Qwen2 and its kin do): most text has them together
    already, and what has not keeps what it has.
    """
    plain = {**description, "added_tokens": [], "truncation": None, "padding": None}
    if _only_composes(plain.get("normalizer")):
        plain["normalizer"] = None
    return plain


def _only_composes(normalizer: dict[str, Any] | None) -> bool:
    if normalizer is None:
        return False
    parts = normalizer.get("normalizers") if normalizer["type"] == "Sequence" else [normalizer]
    return all(part["type"] == "NFC" for part in parts or ())


def _from_merges(folder: Path) -> dict[str, Any]:
    """Return the description of a tokenizer that was published without one.

    Raises:
        ModelUnusable: its files are not there, or how it cuts text is not known.
    """
    published = Published(folder)
    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    if not vocabulary.is_file() or not merges.is_file():
        raise ModelUnusable(f"{folder} has no tokenizer.json; the model cannot be used")
    kind = published.tokenizer.get("tokenizer_class")
    if kind not in _AS_QWEN2:
        raise ModelUnusable(
            f"{folder} has no tokenizer.json, and how a {kind} cuts text stands in code only, which is "
            "never run; the model cannot be used"
        )
    made = Tokenizer(BPE.from_file(str(vocabulary), str(merges)))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    description: dict[str, Any] = json.loads(made.to_str())
    return description


def _spelling_of_letters(token: str) -> bytes:
    letters = _byte_letters()
    if all(letter in letters for letter in token):
        return bytes(letters[letter] for letter in token)
    return b""


def _spelling_of_pieces(token: str) -> bytes:
    if found := _BYTE.fullmatch(token):
        return bytes([int(found[1], 16)])
    return token.replace(_SPACE, " ").encode()


@cache
def _byte_letters() -> dict[str, int]:
    """Return the alphabet of byte-level BPE (GPT-2): printable letters, one for each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    letters.update({chr(0x100 + number): byte for number, byte in enumerate(others)})
    return letters

"""Characters: which belong to a word, which are blank, and between which nothing may be cut."""

from __future__ import annotations

import unicodedata

# Blank within a line. Not str.isspace(): U+2028 or a no-break space is text that somebody put there.
BLANK = " \t\f\v"
BOM = "\ufeff"

# A run of letters longer than this is data, not a word that somebody is typing.
LONGEST_WORD = 200

_JOINER = "\u200d"
_DOLLAR = frozenset({"javascript", "javascriptreact", "typescript", "typescriptreact", "java"})


def is_word(character: str, language: str = "") -> bool:
    """Return True for a character that can continue an identifier or a number."""
    if character == "$":
        return language in _DOLLAR
    return ("a" + character).isidentifier()


def word_start(text: str, offset: int, language: str = "") -> int:
    """Return where the word starts that reaches to `offset`; `offset` itself when none does."""
    start = offset
    while start > 0 and is_word(text[start - 1], language):
        start -= 1
        if offset - start > LONGEST_WORD:
            return offset
    return start


def word_end(text: str, offset: int, language: str = "") -> int:
    """Return where the word ends that starts or goes on at `offset`."""
    end = offset
    while end < len(text) and is_word(text[end], language):
        end += 1
        if end - offset > LONGEST_WORD:
            return offset
    return end


def is_blank(text: str) -> bool:
    """Return True when the text holds nothing but blanks."""
    return not text.strip(BLANK)


def indentation(line: str) -> str:
    """Return the white space that a line starts with, as its further lines would repeat it.

    A form feed or BOM ahead of it is no part of it.
    """
    lead = line[: len(line) - len(line.lstrip(BLANK + BOM))]
    return lead[max(lead.rfind(mark) for mark in ("\f", "\v", BOM)) + 1 :]


def width(indent: str) -> int:
    """Return the column that an indentation reaches, with tabs at every eighth as Python has them."""
    return len(indent.expandtabs(8))


def splits(text: str, offset: int) -> bool:
    """Return True when cutting at `offset` would tear one character apart.

    That is between CR and LF, the halves of a surrogate pair, a letter and its marks, the parts of
    an emoji or of a flag. An approximation of Unicode's grapheme clusters (UAX 29).
    """
    if not 0 < offset < len(text):
        return False
    left, right = text[offset - 1], text[offset]
    if right.isascii():
        return left == "\r" and right == "\n"
    if left in "\r\n":
        return False
    if left == _JOINER or right == _JOINER or "\U0001f3fb" <= right <= "\U0001f3ff":
        return True
    if unicodedata.category(right).startswith("M"):
        return True
    if "\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff":
        return True
    if "\u1100" <= left <= "\u11ff" and "\u1160" <= right <= "\u11ff":
        return True  # parts of one Hangul syllable
    return _is_flag(left) and _is_flag(right) and _flags_before(text, offset) % 2 == 1


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, offset: int) -> int:
    start = offset
    while start > 0 and _is_flag(text[start - 1]):
        start -= 1
    return offset - start


def whole_before(text: str, offset: int) -> int:
    """Return the nearest place at or before `offset` that tears nothing apart."""
    while splits(text, offset):
        offset -= 1
    return offset


def whole_after(text: str, offset: int) -> int:
    """Return the nearest place at or after `offset` that tears nothing apart."""
    while splits(text, offset):
        offset += 1
    return offset

"""A second oracle for positions: random texts, and Python's own codecs to count them.

20,000 conversions in the default run; a million with --hypothesis-profile=long.
"""

import random
import re

import pytest
from hypothesis import settings

from frostline.core.text import Document, Encoding, Position

LETTERS = ["a", "Z", " ", "\t", "\n", "\r", "\r\n", "\f", "\v", "\u0085", "\u2028", "é", "\u0301"]
LETTERS += ["日", "\uffff", "😀", "\U0010ffff", "\ufeff"]
CODECS = {
    Encoding.UTF8: ("utf-8", 1),
    Encoding.UTF16: ("utf-16-le", 2),
    Encoding.UTF32: ("utf-32-le", 4),
}


@pytest.mark.parametrize("encoding", list(Encoding))
def test_positions_there_and_back(encoding: Encoding) -> None:
    codec, width = CODECS[encoding]
    # The profile of the command line is the one in force while a test runs.
    wanted = 1_000_000 if settings.default.max_examples > 1000 else 20_000
    chance = random.Random(0)
    done = 0
    while done < wanted:
        text = "".join(chance.choices(LETTERS, k=chance.randrange(200)))
        lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
        document = Document.of("file:///a.py", 1, "python", text)
        start = 0
        for number, line in enumerate(lines):
            body = line.rstrip("\r\n")
            for column in range(len(body) + 1):
                units = len(body[:column].encode(codec)) // width
                position = document.position(start + column, encoding)
                assert position == Position(number, units)
                assert document.offset(position, encoding) == start + column
                done += 2
            start += len(line)

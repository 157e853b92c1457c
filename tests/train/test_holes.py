"""Holes lie in the text, in order and apart, and look like what an editor asks to fill."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from frostline.train import corpus, data, holes

TEXTS = [Path(module.__file__).read_text("utf-8") for module in (corpus, data, holes)]


@pytest.mark.parametrize("seed", range(30))
def test_holes_are_in_order_and_apart(seed: int):
    rng = np.random.default_rng(seed)
    text = TEXTS[seed % len(TEXTS)][seed * 20 : seed * 20 + 900]
    found = holes.cut(text, 0.3, rng)
    assert all(0 < one.start <= one.end < len(text) for one in found)
    assert all(one.end < other.start for one, other in itertools.pairwise(found))


def test_the_same_generator_cuts_the_same_holes():
    one, other = (holes.cut(TEXTS[0], 0.3, np.random.default_rng(4)) for _ in range(2))
    assert one == other
    assert one


def balanced(text: str) -> bool:
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))


def test_expressions_are_balanced_and_in_a_line():
    text = "\nresult = call(one[2], two.three(4))\nother = {key: [1, 2]}\n"
    rng = np.random.default_rng(0)
    lines = holes.code_lines(text)
    drawn = {
        text[one.start : one.end] for _ in range(300) if (one := holes.expression(text, lines, rng))
    }
    assert all("\n" not in one for one in drawn)
    assert {"result", "two.three(4)", "one[2]", "call(one[2], two.three(4))"} <= drawn
    assert [one for one in drawn if not balanced(one)] == []


def test_lines_begin_after_their_indentation():
    text = "x\n    if a:\n\n\treturn b  \nlast"
    assert [text[one.start : one.end] for one in holes.code_lines(text)] == ["if a:", "return b"]


def test_text_without_lines_has_no_holes():
    assert holes.cut("no line end here", 0.5, np.random.default_rng(0)) == []

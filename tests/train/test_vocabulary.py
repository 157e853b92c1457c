"""The tokenizer that the recipe learns: nothing is lost, and its pieces respect lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from frostline.models.tokens import Tokens
from frostline.train import vocabulary


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    text = Path(vocabulary.__file__).read_text("utf-8")
    return vocabulary.learn([text] * 4, 400, tmp_path_factory.mktemp("vocabulary"))


@pytest.mark.parametrize(
    "text",
    ["a\r\nb", "\ufeffx = 1", "\tnaïve — 日本 😀\n\n", "<|mask|> <|end|>", "", "\x00\x0c\u2028"],
)
def test_every_text_comes_back(tokens: Tokens, text: str):
    assert tokens.spell(tokens.encode(text)) == text.encode()


def test_specials_are_never_found_in_text(tokens: Tokens):
    assert min(tokens.encode("<|begin|><|mask|>")) >= len(vocabulary.SPECIAL)


def test_a_line_end_with_its_indentation_is_a_piece(tokens: Tokens):
    assert tokens.spell([tokens.encode("\n    return x")[0]]) == b"\n    "


def test_digits_are_single(tokens: Tokens):
    assert len(tokens.encode("2026")) == 4


def test_specials_have_the_ids_of_the_spec(tmp_path: Path):
    from frostline.train.folder import SPEC

    vocabulary.learn(["x = 1\n"], 280, tmp_path)
    entries = json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]
    assert {name: entries[f"<|{name}|>"] for name in SPEC["special"]} == SPEC["special"]

"""Text comes back as it went in, or the tokenizer is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers

from frostline.errors import ModelUnusable
from frostline.models.registry import folder_of
from frostline.models.tokens import Tokens
from models import published, tiny

EMBEDDED = Tokens(folder_of("embedded"))


def with_tokenizer(folder: Path, change: Callable[[Tokenizer], Any]) -> Tokens:
    made = tiny.tokenizer()
    change(made)
    (folder / "tokenizer.json").write_text(made.to_str())
    return Tokens(folder)


def described(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Tokens:
    description = json.loads(tiny.tokenizer().to_str())
    change(description)
    (folder / "tokenizer.json").write_text(json.dumps(description))
    return Tokens(folder)


@given(st.text())
def test_text_comes_back_as_it_went_in(text: str) -> None:
    assert EMBEDDED.spell(EMBEDDED.encode(text)) == text.encode()


@pytest.mark.parametrize(
    "text", ["<|mask|>", "x = '<|end|>'  # <|pad|>", "<|begin|>" * 3, "<|prefix|><|suffix|>"]
)
def test_text_that_spells_special_tokens_is_plain_text(tmp_path: Path, text: str) -> None:
    for tokens in (EMBEDDED, with_tokenizer(tmp_path, lambda _: None)):
        ids = tokens.encode(text)
        assert not set(ids) & set(range(8 if tokens is EMBEDDED else 4))
        assert tokens.spell(ids) == text.encode()


def test_no_tokens_are_added_around_a_text(tmp_path: Path) -> None:
    tokens = with_tokenizer(tmp_path, lambda _: None)
    assert tokens.encode("") == []
    assert tokens.encode("return") == [tokens.spelled.index(b"return")]


@pytest.mark.parametrize(
    "change",
    [
        lambda made: setattr(made, "normalizer", normalizers.NFKC()),
        lambda made: setattr(
            made, "normalizer", normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
        ),
        lambda made: setattr(made, "normalizer", normalizers.Lowercase()),
        lambda made: setattr(made, "normalizer", normalizers.Strip()),
        lambda made: setattr(made, "normalizer", normalizers.Replace("\r\n", "\n")),
        lambda made: setattr(made, "normalizer", normalizers.Replace("\ufeff", "")),
        lambda made: setattr(made, "normalizer", normalizers.Prepend("_")),
        lambda made: setattr(
            made, "pre_tokenizer", pre_tokenizers.ByteLevel(add_prefix_space=True)
        ),
        lambda made: setattr(made, "pre_tokenizer", pre_tokenizers.Whitespace()),
        lambda made: setattr(made, "pre_tokenizer", pre_tokenizers.Metaspace()),
    ],
    ids=[
        "NFKC",
        "NFC-lower",
        "lower",
        "strip",
        "crlf",
        "bom",
        "prefix",
        "space",
        "words",
        "metaspace",
    ],
)
def test_a_tokenizer_that_changes_text_is_refused(
    tmp_path: Path, change: Callable[[Tokenizer], Any]
) -> None:
    with pytest.raises(ModelUnusable, match="could not keep your text intact"):
        with_tokenizer(tmp_path, change)


@pytest.mark.parametrize(
    "normalizer",
    [normalizers.NFC(), normalizers.Sequence([normalizers.NFC()])],
    ids=["NFC", "list"],
)
def test_accents_are_not_put_together(tmp_path: Path, normalizer: Any) -> None:
    tokens = with_tokenizer(tmp_path, lambda made: setattr(made, "normalizer", normalizer))
    assert tokens.spell(tokens.encode("e\u0301")) == "e\u0301".encode()
    assert tokens.encode("e\u0301") != tokens.encode("\u00e9")


def test_a_tokenizer_published_as_vocabulary_and_merges(tmp_path: Path) -> None:
    tokens = Tokens(published.dream(tmp_path))
    ids = tokens.encode("    return x1 = 22\r\n")
    assert tokens.spell(ids) == b"    return x1 = 22\r\n"
    # Cut as Qwen2 cuts, digits one by one, and put together by the merges.
    assert [tokens.spell([one]) for one in ids[-4:]] == [b"2", b"2", b"\r", b"\n"]
    assert tokens.spelled.index(b"return") in ids
    assert tokens.spelled.index(b" =") in ids


def test_a_tokenizer_that_does_not_know_every_byte_is_refused(tmp_path: Path) -> None:
    def forget(description: dict[str, Any]) -> None:
        # A byte that no probe happens to hold: the letter for 0xF1.
        del description["model"]["vocab"]["ñ"]

    with pytest.raises(ModelUnusable, match="no token for 1 of the bytes"):
        described(tmp_path, forget)


def test_a_long_text_is_not_cut_and_a_short_one_not_filled_up(tmp_path: Path) -> None:
    def limit(made: Tokenizer) -> None:
        made.enable_truncation(5)
        made.enable_padding(length=9, pad_id=tiny.PAD)

    tokens = with_tokenizer(tmp_path, limit)
    assert tokens.spell(tokens.encode("x" * 1000)) == b"x" * 1000
    assert len(tokens.encode("xyz")) == 3


def test_ids_without_a_spelling_spell_nothing(tmp_path: Path) -> None:
    tokens = with_tokenizer(tmp_path, lambda _: None)
    return_id = tokens.encode("return")
    assert tokens.spell([10**6, *return_id]) == b"return"
    assert tokens.size == len(tokens.spelled)


def test_half_a_character_is_a_byte_and_no_replacement_character() -> None:
    ids = EMBEDDED.encode("日")
    halves = b"".join(EMBEDDED.spell([one]) for one in ids)
    assert halves == "日".encode()

import pytest

from frostline.context.words import (
    LONGEST_WORD,
    indentation,
    is_blank,
    splits,
    whole_after,
    whole_before,
    width,
    word_end,
    word_start,
)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("a\r\nb", [0, 1, 3, 4]),
        ("\r\r\n\n", [0, 1, 3, 4]),
        ("e\u0301x", [0, 2, 3]),
        ("\n\u0301", [0, 1, 2]),
        ("👩\u200d👧", [0, 3]),
        ("👍🏽!", [0, 2, 3]),
        ("🇩🇪🇫🇷", [0, 2, 4]),
        ("🇩🇪🇫", [0, 2, 3]),
        ("\ud83d\ude00", [0, 2]),
        ("\ude00\ud83d", [0, 1, 2]),
        ("\u1112\u1161\u11ab", [0, 3]),
        ("क्षि", [0, 2, 4]),
        ("a\u2028b", [0, 1, 2, 3]),
        ("", [0]),
    ],
)
def test_where_a_text_can_be_cut(text: str, whole: list[int]) -> None:
    assert [at for at in range(len(text) + 1) if not splits(text, at)] == whole
    for at in range(len(text) + 1):
        assert whole_before(text, at) == max(place for place in whole if place <= at)
        assert whole_after(text, at) == min(place for place in whole if place >= at)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("    x", "    "),
        ("\t  x", "\t  "),
        ("\f  x", "  "),
        ("  \f x", " "),
        ("\ufeff  x", "  "),
        ("\u00a0 x", ""),
        ("   ", "   "),
        ("", ""),
    ],
)
def test_the_indentation_that_further_lines_repeat(line: str, expected: str) -> None:
    assert indentation(line) == expected


def test_a_tab_reaches_the_next_eighth_column() -> None:
    assert [width(indent) for indent in ("", "  ", "\t", "  \t", "\t ")] == [0, 2, 8, 8, 9]


def test_blank_is_what_an_editor_shows_as_nothing() -> None:
    assert is_blank(" \t\f\v")
    assert not is_blank("\u2028")
    assert not is_blank("\u00a0")


def test_the_ends_of_a_word() -> None:
    text = "x = größe_1+y"
    assert (word_start(text, 7), word_end(text, 7)) == (4, 11)
    assert (word_start(text, 11), word_end(text, 11)) == (4, 11)
    assert word_start("a.$b", 4, "typescript") == 2
    assert word_start("a.$b", 4, "python") == 3


def test_a_run_of_letters_without_end_is_no_word() -> None:
    text = "a" * (LONGEST_WORD + 1)
    assert word_start(text, len(text)) == len(text)
    assert word_end(text, 0) == 0
    assert word_start(text, LONGEST_WORD) == 0

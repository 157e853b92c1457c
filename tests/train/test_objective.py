"""A question's answers are what stood there, read one place to the left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from frostline.models.tokens import Tokens
from frostline.train import corpus, objective, vocabulary
from frostline.train.objective import (
    BEGIN,
    END,
    MASK,
    MIDDLE,
    PAD,
    PREFIX,
    REACH,
    SUFFIX,
    Questions,
    Recipe,
)

TEXT = Path(corpus.__file__).read_text("utf-8") + Path(objective.__file__).read_text("utf-8")


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    return vocabulary.learn([TEXT], 500, tmp_path_factory.mktemp("vocabulary"))


def questions(tokens: Tokens, **recipe) -> Questions:
    ids = np.asarray([BEGIN, *tokens.encode(TEXT)], dtype=np.uint16)
    return Questions(ids, tokens, Recipe(**recipe))


def answered(batch: objective.Batch) -> torch.Tensor:
    """Return the ids with every answer put where it belongs."""
    flat = batch.ids.flatten().clone()
    flat[batch.read_at + 1] = batch.answers
    return flat.view_as(batch.ids)


def text_of(tokens: Tokens, row: torch.Tensor) -> str:
    ids = [one for one in row.tolist() if one >= objective.SPECIALS]
    return tokens.spell(ids).decode("utf-8", errors="ignore")


@pytest.mark.parametrize("seed", range(10))
def test_holes_filled_with_their_answers_are_the_text(tokens: Tokens, seed: int):
    batch = questions(tokens).batch("holes", 4, 128, np.random.default_rng(seed))
    assert not batch.causal
    assert (batch.ids.flatten()[batch.read_at + 1] == MASK).all()
    full = answered(batch)
    assert (full != MASK).all()
    assert all(text_of(tokens, row) in TEXT for row in full)


def test_no_pad_is_seen_beside_an_open_slot(tokens: Tokens):
    batch = questions(tokens, padded=1.0).batch("holes", 16, 128, np.random.default_rng(1))
    assert (batch.ids != PAD).all()
    assert (batch.answers == PAD).any()


def test_the_first_pad_of_a_hole_weighs_as_much_as_text(tokens: Tokens):
    batch = questions(tokens, padded=1.0, whole=1.0).batch(
        "holes", 8, 128, np.random.default_rng(1)
    )
    pads = batch.answers == PAD
    follows = torch.zeros_like(pads)
    follows[1:] = pads[1:] & pads[:-1] & (batch.read_at[1:] == batch.read_at[:-1] + 1)
    assert (batch.weights[pads & ~follows] == 1.0).all()
    assert torch.allclose(batch.weights[follows], torch.tensor(0.2))
    assert follows.any()


def test_a_begun_hole_is_known_up_to_some_place_and_little_behind_it(tokens: Tokens):
    ask = questions(tokens, whole=0.0, begun=1.0, padded=0.0, hole_share=(0.01, 0.01))
    beginnings = 0
    for seed in range(60):
        row = ask.batch("holes", 1, 128, np.random.default_rng(seed)).ids[0]
        masks = (row == MASK).nonzero().flatten().tolist()
        # One hole: behind the reach of its first open slot all of it is open.
        far = [one for one in masks if one >= masks[0] + REACH]
        assert far == list(range(far[0], far[-1] + 1)) if far else True
        beginnings += bool(far) and far[0] == masks[0] + REACH
    assert beginnings > 5


def test_a_hole_whose_text_is_all_known_asks_whether_it_ends(tokens: Tokens):
    ask = questions(tokens, whole=0.0, begun=1.0, padded=1.0)
    batch = ask.batch("holes", 24, 128, np.random.default_rng(9))
    known = batch.ids.flatten()[batch.read_at] != MASK
    assert (batch.answers[known] == PAD).any()
    assert (batch.answers[known] != PAD).any()


def test_answers_may_weigh_by_the_rate_that_they_were_masked_at(tokens: Tokens):
    ask = questions(tokens, by_rate=True, scattered=(0.25, 0.25))
    batch = ask.batch("scattered", 2, 128, np.random.default_rng(3))
    assert torch.allclose(batch.weights, torch.tensor(4.0))


def test_tokens_never_straddle_an_edge(tokens: Tokens):
    ask = questions(tokens, whole=1.0, padded=0.0)
    batch = ask.batch("holes", 8, 128, np.random.default_rng(2))
    full = answered(batch)
    for seen, true in zip(batch.ids, full, strict=True):
        # Frozen text up to the first hole, encoded by itself, is what the row begins with.
        hole = int((seen == MASK).nonzero()[0])
        before = seen[:hole]
        text = text_of(tokens, before)
        again = tokens.encode(text)
        start = int(before[0] == BEGIN)
        assert before[start:].tolist() == again or "�" in text
        assert len(true) == 128


def test_scattered_masks_hide_what_they_ask_for(tokens: Tokens):
    batch = questions(tokens).batch("scattered", 4, 128, np.random.default_rng(3))
    assert int((batch.ids == MASK).sum()) in (
        len(batch.answers),
        len(batch.answers) + 1,
        *range(len(batch.answers), len(batch.answers) + 5),
    )
    assert (answered(batch)[:, 1:] != MASK).all()


def test_left_to_right_hides_nothing(tokens: Tokens):
    batch = questions(tokens, middle=0.0).batch("left", 4, 128, np.random.default_rng(4))
    assert batch.causal
    assert torch.equal(answered(batch), batch.ids)


def test_the_middle_comes_last_and_ends(tokens: Tokens):
    batch = questions(tokens, middle=1.0).batch("left", 6, 160, np.random.default_rng(5))
    # A window without a line to cut stays as it is.
    rows = [row for row in batch.ids.tolist() if MIDDLE in row]
    assert len(rows) > 3
    for row in rows:
        marks = [row.index(one) for one in (PREFIX, SUFFIX, MIDDLE)]
        assert marks == sorted(marks)
        end = row.index(END, marks[-1])
        middle = tokens.spell(row[marks[2] + 1 : end]).decode()
        before = tokens.spell(row[marks[0] + 1 : marks[1]]).decode(errors="ignore")
        after = tokens.spell(row[marks[1] + 1 : marks[2]]).decode(errors="ignore")
        assert before + middle + after in TEXT


@pytest.mark.parametrize("kind", ["holes", "scattered", "left"])
def test_the_same_generator_asks_the_same(tokens: Tokens, kind: str):
    ask = questions(tokens)
    one, other = (ask.batch(kind, 2, 64, np.random.default_rng(6)) for _ in range(2))
    assert torch.equal(one.ids, other.ids)
    assert torch.equal(one.answers, other.answers)

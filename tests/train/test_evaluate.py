"""Figures: the same holes for all models, filled by the product's rules, in one table."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from frostline.models.tokens import Tokens
from frostline.train import cases, corpus, data, evaluate, objective
from frostline.train.cases import BUCKETS, ROOM
from frostline.train.objective import PAD
from frostline.train.sources import File

FILES = [
    File("one", "corpus.py", Path(corpus.__file__).read_text("utf-8")),
    File("one", "data.py", Path(data.__file__).read_text("utf-8")),
    File("two", "objective.py", Path(objective.__file__).read_text("utf-8")),
]


@pytest.mark.parametrize("bucket", BUCKETS)
def test_cases_are_what_their_bucket_says(trained: Path, bucket: cases.Bucket):
    tokens = Tokens(trained)
    drawn = cases.drawn(FILES, bucket, 12, 96, tokens, seed=1)
    assert len(drawn) == 12
    assert {case.package for case in drawn} == {"one", "two"}
    for case in drawn:
        slots = len(tokens.encode(case.text))
        assert "\n" not in case.text
        assert 1 <= slots <= (4 if bucket == "expression" else ROOM - 1)
        assert len(case.before) + len(case.after) == 96 - ROOM
        if bucket != "expression":
            assert tokens.spell(list(case.after)).startswith((b"\n", b" "))
        if bucket == "whole line":
            assert tokens.spell(list(case.before)).endswith((b" ", b"\n"))
    assert drawn == cases.drawn(FILES, bucket, 12, 96, tokens, seed=1)


def test_expressions_come_from_the_syntax_tree():
    text = 'def f(a):\n    """Words."""\n    return a.b(1) + f"{a}"\n'
    found = {text[one.start : one.end] for one in cases.expressions(text, None)}
    assert found == {"a", "a.b", "1", "a.b(1)", 'f"{a}"', 'a.b(1) + f"{a}"'}


def logits(*rows: dict[int, float]) -> torch.Tensor:
    made = torch.full((1, len(rows), 10), -9.0)
    for slot, row in enumerate(rows):
        for token, value in row.items():
            made[0, slot, token] = value
    return made


def test_the_surest_settles_first():
    now, open = torch.zeros((1, 3), dtype=torch.long), torch.ones((1, 3), dtype=torch.bool)
    now, open = evaluate.settled(now, open, logits({8: 1}, {9: 5}, {8: 2}), padded=False)
    assert now.tolist() == [[0, 9, 0]]
    assert open.tolist() == [[True, False, True]]


def test_a_pad_waits_for_what_is_left_of_it_and_then_ends_the_text():
    now, open = torch.zeros((1, 3), dtype=torch.long), torch.ones((1, 3), dtype=torch.bool)
    sure_of_pads = logits({8: 1}, {PAD: 9}, {PAD: 9})
    now, open = evaluate.settled(now, open, sure_of_pads.clone(), padded=True)
    assert now.tolist() == [[8, 0, 0]]
    now, open = evaluate.settled(now, open, sure_of_pads.clone(), padded=True)
    assert now.tolist() == [[8, PAD, PAD]]
    assert not open.any()


def test_no_end_before_settled_text():
    now, open = torch.tensor([[0, 8]]), torch.tensor([[True, False]])
    now, open = evaluate.settled(now, open, logits({PAD: 9, 9: 1}, {8: 9}), padded=True)
    assert now.tolist() == [[9, 8]]


def test_one_command_compares_two_models(trained: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(evaluate, "WINDOW", 96)
    device = torch.device("cpu")
    one, other = (evaluate.figures(trained, FILES, 4, 0, device, lambda _: None) for _ in range(2))
    assert one.scores == other.scores
    assert all(0 <= score.right <= score.asked for score in one.scores)
    table = evaluate.table([one, other]).splitlines()
    assert len(table) == 2 + 1 + 3 * len(BUCKETS)
    assert table[0] == "| held-out holes | asked | model | model |"

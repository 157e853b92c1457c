"""Figures: the same holes for all models, filled by the product's rules, in one table."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from frostline.models.tokens import Tokens
from frostline.train import cases, corpus, data, evaluate, held, objective
from frostline.train.cases import BUCKETS, ROOM
from frostline.train.objective import MASK, PAD
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


@pytest.fixture
def filled(trained: Path, monkeypatch: pytest.MonkeyPatch):
    """Fill a hole whose text has two tokens with a model that always thinks the same of each slot."""
    tokens = Tokens(trained)
    case = cases.Case("expression", "p", "a.py", (objective.BEGIN,), "12", ())
    assert len(tokens.encode(case.text)) == 2

    def fill(*slots: dict[str | int, float], room: int = 0) -> bytes:
        logits = torch.full((1, len(slots), len(tokens.spelled)), -9.0)
        for slot, thought in enumerate(slots):
            for token, value in thought.items():
                one = token if isinstance(token, int) else tokens.encode(token)[0]
                logits[0, slot, one] = value
        monkeypatch.setattr(evaluate, "_slot_logits", lambda *_: logits)
        return evaluate.fill(None, [case], tokens, room, torch.device("cpu"))[0]

    return fill


def test_an_end_waits_for_what_is_left_of_it(filled):
    assert filled({"a": 1}, {PAD: 9}, {PAD: 9}, room=3) == b"a"


def test_a_hole_of_known_length_is_filled_to_its_end(filled):
    assert filled({"a": 1}, {PAD: 9, "b": 1}) == b"ab"


def test_no_special_token_and_no_line_end_is_text(filled):
    assert filled({MASK: 9, "a": 1}, {"\n": 9, "b": 1}) == b"ab"


def test_one_command_compares_two_models(trained: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(held, "WINDOW", 96)
    device, asked = torch.device("cpu"), held.Drawn(FILES, 4, 0)
    one, other = (evaluate.figures(trained, asked, 0, device, lambda _: None) for _ in range(2))
    assert one.scores == other.scores
    assert all(0 <= score.right <= score.asked for score in one.scores)
    table = evaluate.table([one, other]).splitlines()
    assert len(table) == 2 + 1 + 3 * len(BUCKETS)
    assert table[0] == "| held-out holes | asked | model | model |"


def test_the_fixed_set_is_asked_of_whatever_tokenizer(
    command, trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(held, "WINDOW", 96)
    fixed = Path(__file__).parents[2] / "fixtures" / "eval"
    assert command("--evaluate", str(trained), "--cases", str(fixed), "--holes", "3") == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "| held-out holes | asked | model |"
    assert {row.split(" | ")[1] for row in rows[2:] if "exact" in row} == {"3"}

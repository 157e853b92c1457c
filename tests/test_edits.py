"""Every page under fixtures/edits, through the core alone. The same pages go through the server in
tests/lsp/test_cases.py."""

import pytest

from frostline.core.barrier import Refused
from harness import cases
from harness.core_door import CoreDoor

CASES = cases.load()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: cases.Case) -> None:
    door = CoreDoor(case)
    for line in case.do:
        door.do(line)
    if case.refused is not None:
        assert isinstance(door.answer, Refused), case.prose
        assert door.answer.refusal.code == case.refused, case.prose
    if case.after is not None:
        assert door.document is not None
        assert door.document.text == case.after, case.prose


def test_every_case_says_why_and_ends_somewhere() -> None:
    assert CASES
    for case in CASES:
        assert len(case.prose) > 20, case.name
        assert (case.after is None) != (case.refused is None), case.name
        assert case.holes, case.name

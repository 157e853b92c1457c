"""Every page under fixtures/edits, through the core alone. The same pages go through the server in
tests/lsp/test_cases.py."""

from pathlib import Path

import pytest

from frostline.core.barrier import Refusal, Refused
from frostline.core.partial import Scope
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


def test_every_scope_of_an_accept_has_a_page() -> None:
    asked = {line for case in CASES for line in case.do if line.startswith("accept")}
    words = {word for line in asked for word in line.split()[1:]}
    whole = {Scope.ALL.value} if "accept" in asked else set()
    assert {scope.value for scope in Scope} <= words | whole


# What an edit of the text does to a draft, and the page that shows it.
OUTCOMES = {
    "the hole moves": "pasted_above",
    "what the model saw changed": "changed_elsewhere",
    "its own lines changed": "changed_on_the_same_line",
    "typed inside: frozen from then on": "typed_inside_the_hole",
    "changed inside": "changed_inside_the_hole",
    "across an edge: shrinks": "deleted_across_the_edge",
    "over all of it: gone": "deleted_whole",
    "just what the draft says": "typed_along",
    "undone": "undone_beside",
    "redone": "redone_beside",
    "an accept undone": "undone_accept_of_a_word",
    "an accept redone": "redone_accept_of_a_word",
    "another server's edit": "edited_by_another_server",
    "ten thousand lines": "pasted_ten_thousand_lines",
    "closed": "closed",
    "the file renamed": "renamed",
}


def test_every_outcome_of_an_edit_has_a_page_that_edits() -> None:
    pages = {case.name: case for case in CASES}
    for outcome, name in OUTCOMES.items():
        verbs = {line.split()[0] for line in pages[name].do}
        assert verbs & {"type", "paste", "undo", "another", "close", "rename"}, outcome


# What no page can come to, and the tests that show it: the last net, which nothing that can be asked
# for gets past the others to reach, and a question to the user, which is no answer to an accept.
ELSEWHERE = {"frozen": "core/test_barrier.py", "risky": "core/test_barrier.py"}


def test_every_refusal_has_a_page_or_a_test_that_names_it() -> None:
    pages = {case.refused for case in (*CASES, *cases.load(cases.REFUSED))}
    assert not pages & set(ELSEWHERE)
    for refusal in Refusal:
        if refusal.code in pages:
            continue
        source = (Path(__file__).parent / ELSEWHERE[refusal.code]).read_text()
        assert f'"{refusal.code}"' in source or f"Refusal.{refusal.name}" in source, refusal

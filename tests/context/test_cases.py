"""The case files: what is asked of a text, and what comes back, one page each.

A page is prose and then sections. `-- ask --` holds one line: `cursor`, `selection`, `body`,
`stubs`, `around BEFORE AFTER` or `edit`. The section named after a file is the text, with `‸` for
the cursor, `⟦⟧` around a selection and `«»` around each expected hole. What else is expected has
a section of its own: `hole` (facts about it), `none`, `window` and `preamble`, `written` with
`sound` or `broken`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from frostline.context import holes, skeleton, syntax
from frostline.context.grammar import LANGUAGES, language_of
from frostline.core.regions import Hole
from frostline.core.text import Document, Span, TextEdit

CASES = sorted((Path(__file__).parents[2] / "fixtures" / "context").glob("*.txt"))
_SECTION = re.compile(r"^-- (.+) --\n", re.MULTILINE)
_MARKS = re.compile("[‸⟦⟧«»]")


@dataclass
class Case:
    prose: str
    sections: dict[str, str]
    document: Document
    places: dict[str, list[int]]

    @property
    def ask(self) -> list[str]:
        return self.sections["ask"].split()

    def spans(self, opening: str, closing: str) -> list[Span]:
        pairs = zip(self.places[opening], self.places[closing], strict=True)
        return [Span(start, end) for start, end in pairs]


def read(path: Path) -> Case:
    prose, *rest = _SECTION.split(path.read_text("utf-8"))
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    name = next(name for name in sections if "." in name)
    # What an editor or git would not keep is spelled out.
    marked = sections[name].replace("^L", "\f").replace("^M\n", "\r\n").replace("^I", "\t")
    places: dict[str, list[int]] = {mark: [] for mark in "‸⟦⟧«»"}
    for taken, mark in enumerate(_MARKS.finditer(marked)):
        places[mark.group()].append(mark.start() - taken)
    text = _MARKS.sub("", marked)
    return Case(prose, sections, Document.of(f"file:///{name}", 1, language_of(name), text), places)


def shown(case: Case, found: list[Span]) -> str:
    text = case.document.text
    for span in sorted(found, reverse=True):
        text = text[: span.start] + "«" + text[span.start : span.end] + "»" + text[span.end :]
    return text


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    case = read(path)
    what = case.ask[0]
    if what == "edit":
        check_edit(case)
    elif what == "around":
        check_around(case)
    else:
        check_holes(case, what)


def check_holes(case: Case, what: str) -> None:
    found = asked(case, what)
    expected = case.spans("«", "»")
    spans = [hole.span for hole in found]
    assert shown(case, spans) == shown(case, expected), case.prose
    assert ("none" in case.sections) == (not found), case.prose
    for line in case.sections.get("hole", "").splitlines():
        name, _, value = line.partition(" ")
        facts = {
            "multiline": str(found[0].multiline).lower(),
            "indent": str(len(found[0].indent)),
            "required": found[0].required,
        }
        assert f"{name} {facts[name]}" == f"{name} {value}", case.prose


def asked(case: Case, what: str) -> list[Hole]:
    cursor = case.places["‸"][0] if case.places["‸"] else None
    if what == "stubs":
        return list(holes.stubs(case.document, cursor))
    if what == "selection":
        return [holes.selection(case.document, case.spans("⟦", "⟧")[0])]
    assert cursor is not None
    if what == "body":
        hole = holes.body(case.document, cursor)
        return [] if hole is None else [hole]
    assert what == "cursor"
    return [holes.at_cursor(case.document, cursor)]


def check_around(case: Case) -> None:
    before, after = map(int, case.ask[1:])
    open_ = [Hole(span) for span in case.spans("«", "»")]
    found = skeleton.around(case.document, open_, before=before, after=after)
    assert found.preamble == case.sections["preamble"], case.prose
    assert case.document.slice(found.window) == case.sections["window"], case.prose
    assert len(found.preamble) <= before // 3


def check_edit(case: Case) -> None:
    (span,) = case.spans("«", "»")
    edits = [TextEdit(span, case.sections["written"].removesuffix("\n"))]
    broken = syntax.breaks(case.document.text, edits, case.document.language)
    assert bool(broken) == ("broken" in case.sections), (case.prose, broken)
    assert ("sound" in case.sections) != ("broken" in case.sections)
    after = case.document.replaced(2, edits).text
    if broken and case.sections["broken"]:
        assert [after[each.start : each.end] for each in broken] == (
            case.sections["broken"].splitlines()
        ), case.prose
    old = [TextEdit(span, case.document.slice(span))]
    assert syntax.breaks(case.document.text, old, case.document.language) == ()


def test_every_language_has_cases() -> None:
    asks = {(case.document.language, case.ask[0]) for case in map(read, CASES)}
    for language in LANGUAGES:
        assert {(language, "body"), (language, "stubs"), (language, "edit")} <= asks

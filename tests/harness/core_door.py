"""Runs a case on `core` and `context` alone: no server, no worker, no waiting."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from frostline.context import syntax
from frostline.core import events, partial, provisional
from frostline.core.barrier import NO_FINDINGS, Commit, Findings, Refused
from frostline.core.partial import Scope
from frostline.core.provisional import Draft, Piece, PieceState, edits_for, errors_by_hole
from frostline.core.regions import Gap, Hole, Regions
from frostline.core.session import Session
from frostline.core.text import Change, Document, Encoding, Position, Span, TextEdit, difference
from harness.cases import Case, placed


class CoreDoor:
    """An editor, its server and its worker in one, all by hand."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.document: Document | None = Document.of("file:///case", 1, case.language, case.text)
        holes = [
            Hole(
                span, multiline=any("\n" in draft for run in case.runs for s in run for draft in s)
            )
            for span in case.holes
        ]
        regions = Regions.tile(len(case.text), holes)
        self.session = Session("case", self.document, regions)
        self.runs = iter(case.runs)
        self.last = case.runs[-1]
        self.answer: Commit | Refused | None = None
        self.held = False
        self.texts: list[str] = []
        self.undone: list[str] = []
        self.feed(events.Begun())

    def feed(self, event: events.Event) -> None:
        self.session, effects = self.session.on(event)
        for effect in effects:
            if isinstance(effect, events.Answer):
                self.answer = effect.result
            elif isinstance(effect, events.Ask):
                self.play(effect)

    def play(self, ask: events.Ask) -> None:
        """Play the next run. A repair opens only part of a hole: it gets what is between the pins."""
        if self.held:
            return
        # The model sees all of a page, and says the last run again when it is asked once more.
        self.feed(events.Sent(Span(0, len(self.session.document))))
        self.last = next(self.runs, self.last)
        steps = self.last
        count = sum(isinstance(part, Gap) for hole in ask.regions.holes for part in hole.parts)
        steps = tuple(step * count if len(step) == 1 else step for step in steps)
        for number, step in enumerate(steps, 1):
            drafts = tuple(_draft(text, PieceState.DRAFT) for text in step)
            self.feed(events.Stepped(number, len(steps), drafts))
            if "accept early" in self.case.do:
                return
        final = steps[-1] if steps else ("",) * count
        gaps = tuple(_draft(text, PieceState.STABLE) for text in final)
        drafts = provisional.by_hole(self.session.regions, gaps)
        document = self.session.document
        edits = edits_for(document, self.session.regions, drafts)
        errors = syntax.breaks(document.text, edits, document.language)
        broken = errors_by_hole(document, self.session.regions, drafts, errors)
        self.feed(events.Finished(gaps, True, broken))

    def do(self, line: str) -> None:
        verb, _, rest = line.partition(" ")
        if verb == "type":
            place, _, text = rest.partition(" ")
            self.type(place, json.loads(text))
        elif verb == "paste":
            place, times, text = rest.split(" ", 2)
            self.type(place, json.loads(text) * int(times))
        elif verb == "another":
            self.make(self.edits(rest))
        elif verb in ("undo", "redo"):
            self.back(verb)
        elif verb == "reject":
            self.feed(events.Rejected())
        elif verb in ("close", "rename"):
            # A client closes the old name and opens the new one; of the new one nothing is known.
            self.document = None
            self.feed(events.Closed())
        elif verb == "pin":
            start, end = map(int, rest.split("-"))
            self.feed(events.PinnedDown(0, Span(start, end)))
        elif verb == "back":
            self.feed(events.WentBack())
        elif verb == "retry":
            self.feed(events.Refined(replace(self.session.wish, seed=1)))
        elif verb == "hold":
            self.held = True
        else:
            assert verb == "accept", line
            self.accept(rest)

    def type(self, place: str, text: str) -> None:
        """Replace a range, or insert at a place, as an editor says it."""
        assert self.document is not None
        ends = [Position(*map(int, end.split(":"))) for end in place.split("-")]
        self.texts.append(self.document.text)
        change = [Change((ends[0], ends[-1]), text)]
        edits = self.document.edits_of(change, Encoding.UTF32)
        self.document = self.document.changed(self.document.version + 1, change, Encoding.UTF32)
        self.feed(events.Edited(self.document, edits))

    def back(self, verb: str) -> None:
        """Undo, or undo that; an editor reports either as an edit."""
        assert self.document is not None
        here, there = self.texts, self.undone
        if verb == "redo":
            here, there = there, here
        there.append(self.document.text)
        edit = difference(self.document.text, here.pop())
        self.document = self.document.replaced(self.document.version + 1, [edit])
        self.feed(events.Edited(self.document, (edit,)))

    def edits(self, rest: str) -> list[TextEdit]:
        document = self.document
        assert document is not None
        return [
            TextEdit(Span(*(document.offset(at, Encoding.UTF32) for at in ends)), text)
            for *ends, text in placed(rest)
        ]

    def make(self, edits: Sequence[TextEdit]) -> None:
        """Make edits as one, and report them as one change."""
        assert self.document is not None
        self.texts.append(self.document.text)
        self.document = self.document.replaced(self.document.version + 1, edits)
        self.feed(events.Edited(self.document, _one_after_the_other(edits)))

    def accept(self, how: str) -> None:
        words = [word for word in how.split() if word != "early"]
        scope = Scope(words[0]) if words and words[0] != "anyway" else Scope.ALL
        self.answer = None
        self.feed(events.Accepted(scope, findings=self.find(scope), anyway="anyway" in words))
        if isinstance(self.answer, Commit):
            assert self.document is not None
            assert self.answer.version == self.document.version
            self.make(self.answer.edits)

    def find(self, scope: Scope) -> Findings:
        session = self.session
        if not session.drafts or self.document is None or session.state.ended:
            return NO_FINDINGS
        part = partial.part(
            session.document, session.regions, session.drafts, scope, None, settled=session.settled
        )
        if part is None or scope not in (Scope.ALL, Scope.HOLE):
            return NO_FINDINGS
        document = session.document
        return Findings(
            breaks_syntax=bool(syntax.breaks(document.text, part.edits, document.language))
        )


def _one_after_the_other(edits: Sequence[TextEdit]) -> tuple[TextEdit, ...]:
    """Return edits of one text as edits that each see the text the last one left: from the end."""
    return tuple(sorted(edits, key=lambda edit: edit.span, reverse=True))


def _draft(text: str, state: PieceState) -> Draft:
    pieces = [Piece(letter, PieceState.OPEN if letter == "░" else state, 0.9) for letter in text]
    return Draft(tuple(pieces), True, 0.9)

"""Runs a case on `core` and `context` alone: no server, no worker, no waiting."""

from __future__ import annotations

import json

from frostline.context import syntax
from frostline.core import session as core
from frostline.core.barrier import Commit, Refusal
from frostline.core.provisional import Draft, Piece, PieceState, edits_for, errors_by_hole
from frostline.core.regions import Gap, Hole, Regions
from frostline.core.session import Session
from frostline.core.text import Change, Document, Encoding, Position
from harness.cases import Case


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
        self.answer: Commit | Refusal | None = None
        self.feed(core.Begun())

    def feed(self, event: core.Event) -> None:
        self.session, effects = self.session.on(event)
        for effect in effects:
            if isinstance(effect, core.Answer):
                self.answer = effect.result
            elif isinstance(effect, core.Ask):
                self.play(effect)

    def play(self, ask: core.Ask) -> None:
        """Play the next run. A repair opens only part of a hole: it gets what is between the pins."""
        steps = next(self.runs)
        whole = all(hole.parts == (Gap(),) for hole in ask.regions.holes)
        count = sum(isinstance(part, Gap) for hole in ask.regions.holes for part in hole.parts)
        if not whole:
            steps = tuple((step[0],) * count for step in steps)
        for number, step in enumerate(steps, 1):
            drafts = tuple(_draft(text, PieceState.DRAFT) for text in step)
            self.feed(core.Stepped(number, len(steps), drafts))
            if "accept early" in self.case.do:
                return
        final = steps[-1] if steps else ("",) * count
        gaps = tuple(_draft(text, PieceState.STABLE) for text in final)
        drafts = core.by_hole(self.session.regions, gaps)
        document = self.session.document
        edits = edits_for(document, self.session.regions, drafts)
        errors = syntax.breaks(document.text, edits, document.language)
        broken = errors_by_hole(document, self.session.regions, drafts, errors)
        self.feed(core.Finished(gaps, True, broken))

    def do(self, line: str) -> None:
        verb, _, rest = line.partition(" ")
        if verb == "type":
            place, _, text = rest.partition(" ")
            assert self.document is not None
            at = Position(*map(int, place.split(":")))
            change = Change((at, at), json.loads(text))
            version = self.document.version + 1
            self.document = self.document.changed(version, [change], Encoding.UTF32)
            self.feed(core.Edited(self.document))
        elif verb == "reject":
            self.feed(core.Rejected())
        elif verb == "close":
            self.document = None
            self.feed(core.Closed())
        else:
            assert verb == "accept", line
            self.answer = None
            self.feed(core.Accepted())
            if isinstance(self.answer, Commit):
                assert self.document is not None
                assert self.answer.version == self.document.version
                self.document = self.document.replaced(self.document.version + 1, self.answer.edits)
                self.feed(core.Edited(self.document))


def _draft(text: str, state: PieceState) -> Draft:
    pieces = [Piece(letter, PieceState.OPEN if letter == "░" else state, 0.9) for letter in text]
    return Draft(tuple(pieces), True, 0.9)

"""Holes in awkward places, filled by a model that writes anything: nothing leaves its hole.

The model is tiny, random, and sampled hot, so what it says is as wild as a vocabulary allows. What is
asked for, its constraints, the repairs and the barrier are the product's own.
"""

from __future__ import annotations

import random
import tokenize
from collections.abc import Callable
from io import StringIO

import msgspec
import pytest
from hypothesis import settings as hypothesis_settings

from frostline.config import Settings
from frostline.context import holes, syntax
from frostline.context.exclude import Exclusions
from frostline.core import events, provisional
from frostline.core.barrier import Refusal
from frostline.core.events import State, Wish
from frostline.core.partial import Scope
from frostline.core.regions import Regions
from frostline.core.session import Session
from frostline.core.text import Document, Span, apply
from frostline.lsp import convert, findings, request
from frostline.models import registry
from frostline.wire import messages as wire
from frostline.worker.engine import Engine
from models import tiny

WORDS = ("size", "total", "café", "x1", "name_of", "items", "日本")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = tiny.make(tmp_path_factory.mktemp("wild"), max_context=256)
    backend = registry.load(str(folder), "cpu")
    # Halves of characters are refused whatever stands around them; here the rest is of interest.
    halves = [one for one, spelled in enumerate(backend.tokens.spelled) if not spelled.isascii()]
    backend.spec = msgspec.structs.replace(backend.spec, banned=(*backend.spec.banned, *halves))
    return Engine(backend)


def count() -> int:
    """Return how many cases of a kind are tried: few by default, 200 in the long profile."""
    return 200 if hypothesis_settings.get_current_profile_name() == "long" else 8


def in_string(word: Callable[[], str], end: str) -> str:
    return f"{word()} = {end}{word()} |{word()}{end}\nprint({word()})\n"


# Each is a file that parses, with a bar where the cursor is, or two around what is selected.
KINDS: dict[str, Callable[[random.Random, Callable[[], str]], str]] = {
    "string": lambda draw, word: in_string(word, draw.choice("\"'")),
    "f-string": lambda draw, word: f"{word()} = f'{word()} |{{{word()}}} {word()}'\n",
    "comment": lambda draw, word: f"{word()} = 1  # {word()} |\nprint({word()})\n",
    "dict": lambda draw, word: f"{word()} = {{'{word()}': |1|, '{word()}': 2}}\nprint(1)\n",
    "call": lambda draw, word: f"print({word()}, |{word()}|, end='')\n{word()} = 2\n",
    "decorator": lambda draw, word: f"@|{word()}|\ndef {word()}():\n    return 1\n",
    "one-line if": lambda draw, word: f"if {word()}: |pass|\n{word()} = 3\n",
    "docstring": lambda draw, word: (
        f'def {word()}():\n    """{word()} |\n    {word()}\n    """\n    return 1\n'
    ),
    "tabs": lambda draw, word: (
        f"def {word()}():\n\tif {word()}:\n\t\t|return 1\n\t\tpass|\n\treturn 2\n"
    ),
    "crlf": lambda draw, word: f"def {word()}():\r\n    |a = 1\r\n    b = 2|\r\n    return 2\r\n",
}


def opened(marked: str) -> tuple[Document, Span]:
    """Return a document, and where its cursor or selection is."""
    first, last = marked.index("|"), marked.rindex("|")
    text = marked.replace("|", "")
    return Document.of("file:///w/a.py", 1, "python", text), Span(first, max(last - 1, first))


def drafted(engine: Engine, session: Session) -> Session:
    """Have a session's runs done one after another, as the server does, until it rests."""
    session, effects = session.on(events.Begun())
    while asks := [one for one in effects if isinstance(one, events.Ask)]:
        ask = asks[-1]
        asked, window = request.infill(
            f"run{ask.attempt}",
            session.document,
            session.regions,
            ask.wish,
            Settings(temperature=3.0, steps=6),
            attempt=ask.attempt,
            again=ask.again,
            max_context=256,
        )
        session, _ = session.on(events.Sent(window))
        *_, done = engine.alone(asked)
        assert isinstance(done, wire.Done)
        gaps = tuple(convert.final_in(gap) for gap in done.gaps)
        drafts = provisional.by_hole(session.regions, gaps)
        edits = provisional.edits_for(session.document, session.regions, drafts)
        errors = syntax.breaks(session.document.text, edits, "python")
        broken = provisional.errors_by_hole(session.document, session.regions, drafts, errors)
        session, effects = session.on(events.Finished(gaps, done.outcome == "converged", broken))
    return session


def strings_and_comments(text: str) -> list[int]:
    """Return the kinds of Python's tokens that hold prose, in order."""
    prose = {tokenize.STRING, tokenize.COMMENT}
    return [
        one.type for one in tokenize.generate_tokens(StringIO(text).readline) if one.type in prose
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_leaves_its_hole_and_what_parsed_still_parses(kind: str, engine: Engine) -> None:
    draw = random.Random(kind)
    committed = 0
    for number in range(count()):
        marked = KINDS[kind](draw, lambda: draw.choice(WORDS) + str(draw.randrange(9)))
        document, span = opened(marked)
        compile(document.text, kind, "exec")
        hole = holes.selection(document, span)
        wish = Wish(seed=number + 1)
        session = drafted(engine, Session("s", document, Regions.tile(len(document), [hole]), wish))
        if session.state is not State.READY:
            assert session.refusal is Refusal.EMPTY
            continue
        edits = provisional.edits_for(document, session.regions, session.drafts)
        for edit in edits:
            assert hole.span.start <= edit.span.start <= edit.span.end <= hole.span.end
            assert hole.multiline or not set(edit.text) & set("\r\n"), edit.text
        found = findings.find(document, edits, Settings(), Exclusions(), whole=True, verified=True)
        session, effects = session.on(events.Accepted(Scope.ALL, findings=found))
        (answer,) = [one.result for one in effects if isinstance(one, events.Answer)]
        if session.state is not State.COMMITTING:
            # What breaks the syntax after all repairs is offered, and goes in on request only.
            assert session.unsound, answer
            continue
        committed += 1
        after = apply(document.text, edits)
        compile(after, kind, "exec")
        if kind in ("string", "f-string", "comment", "docstring"):
            assert strings_and_comments(after) == strings_and_comments(document.text), after
        if kind == "crlf":
            assert "\n" not in after.replace("\r\n", "")
    assert committed or kind not in ("string", "comment", "docstring"), "prose takes anything"

"""How good the texts are that each way of filling gives, and what they cost, on the same holes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from frostline.evals.holes import Case
from frostline.evals.loops import Fill, Filled

Encode = Callable[[str], list[int]]
Say = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One way to fill, over all holes.

    Attributes:
        exact: share of holes with just the text that stood there.
        accuracy: mean over holes of the share of tokens that are right where they stand; a text that
            is too long or too short counts as wrong in what is too much or missing.
        forwards_per_token: passes of the model for each token of text that came of them.
        regret: share of slots shown as stable that changed later.
        lead: mean steps between a slot's stable mark and the end.
        verified: share of holes whose text the last look agrees with.
    """

    name: str
    holes: int
    exact: float
    accuracy: float
    ms: float
    forwards: float
    forwards_per_token: float
    tokens_per_second: float
    regret: float
    lead: float
    verified: float


def filled(
    cases: Sequence[Case], ways: Mapping[str, Fill], say: Say = lambda *_: None
) -> dict[str, list[Filled]]:
    """Return what each way makes of each case; the ways take turns, so that none has the better hour."""
    results: dict[str, list[Filled]] = {name: [] for name in ways}
    for number, case in enumerate(cases):
        for name, fill in ways.items():
            results[name].append(fill(case))
        say(number + 1, len(cases))
    return results


def rows(
    cases: Sequence[Case], results: Mapping[str, Sequence[Filled]], encode: Encode
) -> Iterator[Row]:
    """Yield the sums of each way."""
    for name, found in results.items():
        yield _row(name, cases, found, encode)


def _row(name: str, cases: Sequence[Case], found: Sequence[Filled], encode: Encode) -> Row:
    count = len(cases)
    tokens = sum(one.figures.tokens for one in found)
    forwards = sum(one.figures.forwards for one in found)
    seconds = sum(one.seconds for one in found)
    return Row(
        name,
        count,
        sum(one.text == case.text for one, case in zip(found, cases, strict=True)) / count,
        sum(
            accuracy(encode(one.text), encode(case.text))
            for one, case in zip(found, cases, strict=True)
        )
        / count,
        seconds / count * 1000,
        forwards / count,
        forwards / max(tokens, 1),
        tokens / max(seconds, 1e-9),
        _mean([one.figures.regret for one in found]),
        _mean([one.figures.lead for one in found]),
        sum(one.figures.verified for one in found) / count,
    )


def accuracy(draft: Sequence[int], true: Sequence[int]) -> float:
    """Return the share of tokens that stand where they should, of the longer of the two."""
    right = sum(one == other for one, other in zip(draft, true, strict=False))
    return right / max(len(draft), len(true), 1)


def same(one: Sequence[Filled], other: Sequence[Filled]) -> float:
    """Return the share of holes that two ways filled with the same text."""
    pairs = list(zip(one, other, strict=True))
    return sum(a.text == b.text for a, b in pairs) / len(pairs)


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0

"""Held-out holes: drawn in packages that no one trained on, or kept as a fixed set that anybody has.

`python -m frostline.train.held --data DIR --shard FILE` makes the fixed set (fixtures/eval) and the runs of
words that no training text may hold, HumanEval's among them. It takes no hole whose surroundings
share such a run with what the weights that ship have learnt.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from frostline.errors import BadPlace
from frostline.models.tokens import Tokens
from frostline.train import corpus, data, sources
from frostline.train.cases import BUCKETS, Bucket, Case, Hole, case_of, drawn, holes
from frostline.train.objective import BEGIN
from frostline.train.sources import File

KEPT = "holes.jsonl"
# Of each kind in the fixed set.
EACH = 100
WINDOW = 256


class Asked(Protocol):
    """What a model is asked for its figures."""

    def cases(self, bucket: Bucket, tokens: Tokens) -> list[Case]:
        """Return the holes of a kind."""

    def windows(self, tokens: Tokens, rng: np.random.Generator) -> Iterator[list[int]]:
        """Yield windows of tokens in which any may be masked."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """`count` holes of each kind out of files, the same for the same seed and tokenizer."""

    files: list[File]
    count: int
    seed: int

    def cases(self, bucket: Bucket, tokens: Tokens) -> list[Case]:
        return drawn(self.files, bucket, self.count, WINDOW, tokens, self.seed)

    def windows(self, tokens: Tokens, rng: np.random.Generator) -> Iterator[list[int]]:
        packages = sorted({file.package for file in self.files})
        given = 0
        while given < self.count // 2:
            choice = [one for one in self.files if one.package == packages[given % len(packages)]]
            file = choice[int(rng.integers(len(choice)))]
            ids = [BEGIN, *tokens.encode(file.text)]
            if len(ids) > WINDOW:
                start = int(rng.integers(len(ids) - WINDOW))
                yield ids[start : start + WINDOW]
                given += 1


@dataclass(frozen=True, slots=True)
class Kept:
    """The fixed set, whatever the tokenizer: at most `count` holes of each kind."""

    holes: list[Hole]
    count: int

    def cases(self, bucket: Bucket, tokens: Tokens) -> list[Case]:
        made = (case_of(one, WINDOW, tokens) for one in self.holes if one.bucket == bucket)
        return [case for case in made if case is not None][: self.count]

    def windows(self, tokens: Tokens, rng: np.random.Generator) -> Iterator[list[int]]:
        for bucket in BUCKETS:
            for hole in [one for one in self.holes if one.bucket == bucket][: self.count]:
                head = [BEGIN] if hole.at_start else []
                ids = head + tokens.encode(hole.before + hole.text + hole.after)
                if len(ids) >= WINDOW:
                    yield ids[:WINDOW]


def read(folder: Path) -> list[Hole]:
    """Return the holes that are kept in a folder.

    Raises:
        BadPlace: there are none.
    """
    path = folder / KEPT
    if not path.is_file():
        raise BadPlace(f"{folder} holds no {KEPT}; leave out --cases to draw holes from packages")
    try:
        return [msgspec.json.decode(line, type=Hole) for line in path.read_bytes().splitlines()]
    except msgspec.MsgspecError as error:
        raise BadPlace(f"{path} is not a list of holes: {error}") from error


def texts_in(folder: Path) -> list[str]:
    """Return the texts of the holes kept in a folder, or else of all files in it."""
    if (folder / KEPT).is_file():
        return texts(read(folder))
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path.read_text("utf-8", errors="ignore") for path in paths]


def texts(kept: Iterable[Hole]) -> list[str]:
    """Return what stands in and around each hole."""
    return [one.before + one.text + one.after for one in kept]


def unknown(kept: list[Hole], learnt: Iterable[str]) -> list[Hole]:
    """Return the holes whose texts share no run of words with any text that was learnt."""
    known: set[int] = set()
    grams = [corpus.grams_of([text]) for text in texts(kept)]
    every = corpus.grams_of(texts(kept))
    for text in learnt:
        known.update(corpus.shared(text, every).tolist())
    return [one for one, own in zip(kept, grams, strict=True) if known.isdisjoint(own.tolist())]


def keep(folder: Path, files: list[File], learnt: Iterable[str], tokens: Tokens) -> list[Hole]:
    """Return a fixed set of holes in these files, written to a folder."""
    wide = [
        hole
        for bucket in BUCKETS
        for hole in holes(files, bucket, 3 * EACH, WINDOW, tokens, seed=7)
    ]
    counted: Counter[str] = Counter()
    taken = []
    for hole in unknown([_trimmed(one, tokens) for one in wide], learnt):
        counted[hole.bucket] += 1
        if counted[hole.bucket] <= EACH:
            taken.append(hole)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [msgspec.json.encode(one) for one in taken]
    (folder / KEPT).write_bytes(b"\n".join(lines) + b"\n")
    return taken


def _trimmed(hole: Hole, tokens: Tokens) -> Hole:
    """Return the hole with no more around it than a window takes, and a quarter for other tokenizers."""
    before, after = tokens.encode(hole.before), tokens.encode(hole.after)
    ahead = max(100, 300 - len(before))
    behind = max(200, 300 - len(after))
    spelled = [tokens.spell(part).decode() for part in (before[-behind:], after[:ahead])]
    return msgspec.structs.replace(
        hole,
        before=spelled[0],
        after=spelled[1],
        at_start=hole.at_start and len(before) <= behind,
    )


def main() -> None:
    """Make the fixed set and the runs of words that no training text may hold."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of packages")
    parser.add_argument("--shard", type=Path, required=True, help="what was learnt, first file")
    parser.add_argument("--model", type=Path, required=True, help="folder of the shard's tokenizer")
    parser.add_argument("--out", type=Path, default=Path("fixtures/eval"))
    args = parser.parse_args()
    listed, tokens, wheels = sources.listed(), Tokens(args.model), args.data / "wheels"
    learnt = data.texts_of(data.open_shard(args.shard), tokens)
    files = data.held_out_files(listed, wheels, print)
    taken = keep(args.out, files, learnt, tokens)
    grams = corpus.grams_of([*texts(taken), *data.benchmark_texts(listed, wheels, print)])
    grams.astype("<u8").tofile(corpus.EVALUATED)
    print(f"{len(taken)} holes, {len(grams)} runs of words")


if __name__ == "__main__":
    main()

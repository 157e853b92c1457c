"""`frostline rewrite` of many lines: block by block, and all of them or nothing in the file."""

import json
from pathlib import Path

import pytest

from frostline.cli import main

pytestmark = pytest.mark.e2e

OLD = "# kept\n" + "".join(f"def {name}():\n    x = 1\n    return x\n\n" for name in "ab")
NEW = [f"def {name}():\n    y = 2\n    z = 3\n    return y" for name in "ab"]


def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> Path:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"runs": [[["░", text]] for text in texts], "pause_ms": 1}))
    settings = tmp_path / "settings.toml"
    settings.write_text(f"worker = 'scripted:{script}'\nblock_lines = 4\n")
    monkeypatch.setenv("FROSTLINE_CONFIG", str(settings))
    file = tmp_path / "long.py"
    file.write_text(OLD)
    return file


def test_all_blocks_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = play(tmp_path, monkeypatch, NEW)
    assert main(["rewrite", f"{file}:2-9", "--write", "--json"]) == 0
    assert file.read_text() == "# kept\n" + "".join(text + "\n\n" for text in NEW)
    result = json.loads(capsys.readouterr().out)
    assert [hole["range"]["start"]["line"] for hole in result["holes"]] == [1, 5], "as the file was"
    assert [hole["new"] for hole in result["holes"]] == NEW
    assert result["metrics"]["steps"] == 4


def test_a_refused_block_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = play(tmp_path, monkeypatch, [NEW[0], "def b(:"])
    assert main(["rewrite", f"{file}:2-9", "--write"]) == 1
    assert file.read_text() == OLD
    assert "syntax" in capsys.readouterr().err

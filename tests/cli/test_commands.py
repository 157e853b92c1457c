"""The other commands: help, demo, doctor, models."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from frostline import config
from frostline.cli import main

COMMANDS = ["demo", "lsp", "worker", "fill", "rewrite", "models", "doctor", "train"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"example:\n  frostline {command}" in capsys.readouterr().out


def test_without_a_command_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out = capsys.readouterr().out
    assert all(command in out for command in COMMANDS)


@pytest.mark.e2e
def test_the_demo_keeps_every_promise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "--json", "--threads", "1"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["committed"] is True
    assert result["frozen_identical"] is True
    assert result["untouched_before_accept"] is True
    assert result["undo_restores"] is True
    assert result["undo_steps"] == 1
    assert result["provisional_updates"] >= 3
    for name in (
        "time_to_first_useful_block_ms",
        "time_to_complete_ms",
        "revision_churn",
        "forwards",
        "regret",
    ):
        assert isinstance(result[name], int | float), name


@pytest.mark.e2e
def test_the_demo_prints_plain_lines_without_a_terminal(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    command = [sys.executable, "-m", "frostline", "demo", "--threads", "1", "--svg", str(picture)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "step  1/" in result.stdout
    assert "\x1b" not in result.stdout
    assert "frozen text identical" in result.stdout
    assert picture.read_text().startswith("<svg")


@pytest.mark.e2e
def test_doctor_runs_what_it_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--threads", "1"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert {check["name"] for check in report["checks"]} >= {"language server", "model", "worker"}
    assert report["server_rss_bytes"] > 1_000_000
    (limits,) = [check["found"] for check in report["checks"] if check["name"] == "cannot"]
    assert "does not follow instructions" in limits


@pytest.mark.e2e
def test_doctor_says_what_to_do(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", "--model", str(tmp_path / "nowhere")]) == 1
    out = capsys.readouterr().out
    assert "FAIL  model" in out
    assert "there is no model" in out
    assert "→" in out
    assert "Traceback" not in out


def test_doctor_lists_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--settings", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(config.Settings.__dataclass_fields__)
    assert all(row["meaning"] for row in rows)


def test_models_lists_the_embedded_one_and_what_cannot_be_used(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["models", "list", "--json", str(tmp_path)]) == 0
    embedded, other = json.loads(capsys.readouterr().out)["models"]
    assert embedded["usable"] is True
    assert embedded["sees"] == "both sides"
    assert other["usable"] is False
    assert "has no config.json" in other["problem"]

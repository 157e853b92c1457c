"""Who may import whom, and what serving must never load."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_import_contracts_hold() -> None:
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as run; run()",
    ]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


def test_every_part_is_under_a_contract() -> None:
    layers = (ROOT / "pyproject.toml").read_text()
    parts = {
        path.stem
        for path in (ROOT / "server" / "frostline").iterdir()
        if path.suffix in ("", ".py")
    }
    for part in parts - {"__init__", "__main__", "__pycache__"}:
        assert f'"{part}' in layers or f" {part}" in layers or f"({part}" in layers, part

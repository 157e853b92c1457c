"""House rules as tests: what the local command says is what CI says."""

import ast
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from frostline.core.barrier import Refusal
from frostline.lsp import extension as ext

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "server" / "frostline"
SOURCES = sorted(PACKAGE.rglob("*.py"))


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff(command: list[str]) -> None:
    result = run(sys.executable, "-m", "ruff", *command, "server", "tests")
    assert result.returncode == 0, result.stdout


def test_types() -> None:
    result = run(sys.executable, "-m", "mypy")
    assert result.returncode == 0, result.stdout


def test_every_module_and_public_function_says_what_it_is_for() -> None:
    silent = []
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        if not ast.get_docstring(tree) and path.name != "__init__.py":
            silent.append(f"{path.relative_to(ROOT)}: module")
        silent += [
            f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and not node.name.startswith("_")
            and not ast.get_docstring(node)
        ]
    assert silent == []


def calls(path: Path) -> set[str]:
    """Return what a module calls, as written up to the last name: `eval`, `torch.load`, `.splitlines`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            found |= {name, "." + name.rpartition(".")[2]} if "." in name else {name}
            found |= {f"{word.arg}={ast.unparse(word.value)}" for word in node.keywords}
    return found


def test_no_remote_code_and_no_pickle() -> None:
    forbidden = {
        "eval",
        "exec",
        "torch.load",
        "pickle.load",
        "pickle.loads",
        "trust_remote_code=True",
    }
    assert {path: calls(path) & forbidden for path in SOURCES if calls(path) & forbidden} == {}


def test_lines_are_never_split_as_python_splits_them() -> None:
    # str.splitlines also breaks at form feeds, NEL and U+2028; LSP does not.
    parts = ("core", "lsp", "context")
    sources = [path for part in parts for path in (PACKAGE / part).rglob("*.py")]
    assert [path for path in sources if ".splitlines" in calls(path)] == []


def test_the_documented_extension_is_the_one_there_is() -> None:
    page = (ROOT / "server" / "ARCHITECTURE.md").read_text()
    digest = hashlib.sha256((PACKAGE / "lsp" / "extension.py").read_bytes()).hexdigest()[:16]
    assert f"`{digest}`" in page, (
        f"lsp/extension.py changed: read ARCHITECTURE.md's section on it again, and put {digest} there"
    )
    for method in ext.METHODS:
        assert f"`{method}`" in page, method


def test_every_refusal_is_documented() -> None:
    page = (ROOT / "server" / "ARCHITECTURE.md").read_text()
    missing = [refusal.code for refusal in Refusal if f"`{refusal.code}`" not in page]
    assert missing == []


def test_the_readme_names_every_folder_that_there_is() -> None:
    page = (ROOT / "README.md").read_text()
    for part in sorted(
        path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_"
    ):
        assert f"{part}/" in page, part


def test_the_wheel_holds_what_the_package_needs(tmp_path: Path) -> None:
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    result = run(sys.executable, "-c", build, str(tmp_path))
    assert result.returncode == 0, result.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in PACKAGE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert f"frostline/{path.relative_to(PACKAGE)}" in names
    assert wheel.stat().st_size < 80_000_000

import os
from pathlib import Path

import pytest

from frostline.config import Settings
from frostline.context.exclude import SECRET_FOLDERS, SECRET_NAMES, Exclusions
from frostline.errors import BadSetting


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    return tmp_path


def exclusions(root: Path, **settings) -> Exclusions:
    return Exclusions.of(Settings(**settings), (str(root),))


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        "prod.env",
        ".ENV",
        "server.pem",
        "server.KEY",
        "id_rsa",
        "id_rsa.pub",
        "id_ed25519",
        "store.p12",
        ".netrc",
        "credentials",
        "credentials.json",
        "secrets.yaml",
        "passwords.kdbx",
        ".npmrc",
        "main.tfstate",
        ".bash_history",
        "sub/.aws/config",
        "sub/.SSH/config",
        ".git/config",
    ],
)
def test_secrets_are_kept(root: Path, name: str) -> None:
    for given in (str(root / name), (root / name).as_uri()):
        why = exclusions(root).reason(given, 10)
        assert why is not None
        assert "secrets" in why
        assert Path(name).name in why


@pytest.mark.parametrize(
    "name",
    ["a.py", "environment.py", "keys.py", "src/envelope.ts", "monkey.py", ".github/x.yml"],
)
def test_sources_are_not(root: Path, name: str) -> None:
    assert exclusions(root).reason(str(root / name), 10) is None


def test_a_folder_that_is_called_like_a_secret_is_none(root: Path) -> None:
    assert exclusions(root).reason(str(root / "credentials-service" / "a.py"), 1) is None


@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "vscode-notebook-cell:/x/a.py", "relative.py", ""]
)
def test_buffers_without_a_file(root: Path, uri: str) -> None:
    assert exclusions(root).reason(uri, None) is None


@pytest.mark.parametrize("uri", ["untitled:.env", "vscode-remote://host/home/.env"])
def test_a_name_counts_wherever_it_comes_from(root: Path, uri: str) -> None:
    assert exclusions(root).reason(uri, None) is not None


def test_globs_of_the_user(root: Path) -> None:
    rules = exclusions(root, exclude=("", "*.sql", "/generated/", "!keep.sql", "!.env.example"))
    assert rules.reason(str(root / "src" / "a.sql"), 1) == (
        "a.sql is kept from the model: the setting `exclude` has '*.sql'."
    )
    assert rules.reason(str(root / "generated" / "deep" / "a.py"), 1) is not None
    assert rules.reason(str(root / "src" / "generated" / "a.py"), 1) is None
    assert rules.reason(str(root / "keep.sql"), 1) is None
    assert rules.reason(str(root / ".env.example"), 1) is None
    assert rules.reason(str(root / ".env"), 1) is not None


def test_a_glob_that_is_none_is_an_error_of_the_settings(root: Path) -> None:
    with pytest.raises(BadSetting, match="exclude"):
        exclusions(root, exclude=("!",))


def test_what_git_ignores(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\nbuild/\n!important.log\n# note\n!\n")
    (root / "src" / ".gitignore").write_text("local.py\n!kept.log\n")
    rules = exclusions(root)
    for name in ("x.log", "src/x.log", "build/a.py", "build/deep/a.py", "src/local.py"):
        why = rules.reason(str(root / name), 1)
        assert why is not None, name
        assert "ignores it" in why
    for name in ("important.log", "local.py", "src/kept.log", "src/building.py"):
        assert rules.reason(str(root / name), 1) is None, name
    assert "src/.gitignore" in str(rules.reason(str(root / "src" / "local.py"), 1))
    assert exclusions(root, respect_gitignore=False).reason(str(root / "x.log"), 1) is None


def test_a_folder_that_is_ignored_hides_what_a_deeper_file_says(root: Path) -> None:
    (root / ".gitignore").write_text("vendor/\n")
    (root / "vendor").mkdir()
    (root / "vendor" / ".gitignore").write_text("!*\n")
    assert exclusions(root).reason(str(root / "vendor" / "a.py"), 1) is not None


def test_a_workspace_inside_of_a_repository(root: Path) -> None:
    (root / ".gitignore").write_text("*.gen.py\n")
    rules = exclusions(root / "src")
    assert rules.reason(str(root / "src" / "a.gen.py"), 1) is not None
    assert rules.reason(str(root / "src" / "a.py"), 1) is None


def test_a_gitignore_that_changes_is_read_again(root: Path) -> None:
    rules, path = exclusions(root), str(root / "a.py")
    assert rules.reason(path, 1) is None
    (root / ".gitignore").write_text("a.py\n")
    assert rules.reason(path, 1) is not None
    (root / ".gitignore").write_text("b.py\n")
    os.utime(root / ".gitignore", ns=(1, 1))
    assert rules.reason(path, 1) is None
    (root / ".gitignore").unlink()
    assert rules.reason(str(root / "b.py"), 1) is None


def test_a_gitignore_without_a_repository_counts_in_the_workspace(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("a.py\n")
    assert exclusions(tmp_path).reason(str(tmp_path / "a.py"), 1) is not None


def test_a_link_to_a_secret_is_a_secret(root: Path) -> None:
    (root / ".env").write_text("TOKEN=1\n")
    (root / "harmless.py").symlink_to(root / ".env")
    (root / "elsewhere").symlink_to(root / ".git")
    assert exclusions(root).reason(str(root / "harmless.py"), 1) is not None
    assert exclusions(root).reason(str(root / "elsewhere" / "a.py"), 1) is not None
    dotted = str(root / "src" / ".." / ".env")
    assert exclusions(root).reason(dotted, 1) is not None


def test_size(root: Path) -> None:
    rules = exclusions(root, max_file_bytes=2_000_000)
    assert rules.reason(str(root / "a.py"), 2_000_000) is None
    assert rules.reason(str(root / "a.py"), None) is None
    assert rules.reason(str(root / "a.py"), 2_500_000) == (
        "a.py is too large for the model: 2.5 MB, limit 2.0 MB."
    )
    assert rules.reason("untitled:Untitled-1", 2_500_000) is not None


def test_the_lists_are_lower_case_and_sorted_out() -> None:
    assert all(name == name.lower() for name in SECRET_NAMES)
    assert len(set(SECRET_NAMES)) == len(SECRET_NAMES)
    assert all(name == name.lower() for name in SECRET_FOLDERS)

"""Helix is not run here. Its set-up is read, and held to the keys that the Helix documentation has."""

import tomllib
from typing import Any

import pytest

from editors.neovim import ROOT
from frostline.cli import main
from frostline.config import Settings

# "Language Server configuration" and "Configuring Language Servers for a language" there.
SERVER_KEYS = {"command", "args", "config", "timeout", "environment", "required-root-patterns"}
ENTRY_KEYS = {"name", "only-features", "except-features"}
FEATURES = {
    *("format", "goto-definition", "goto-declaration", "goto-type-definition", "goto-reference"),
    *("goto-implementation", "signature-help", "hover", "document-highlight", "completion"),
    *("code-action", "workspace-command", "document-symbols", "workspace-symbols"),
    *("diagnostics", "rename-symbol", "inlay-hints"),
}


@pytest.fixture(scope="module")
def setup() -> dict[str, Any]:
    return tomllib.loads((ROOT / "editors" / "helix" / "languages.toml").read_text())


def test_the_server_is_described_by_documented_keys(setup: dict[str, Any]):
    assert set(setup) == {"language-server", "language"}
    server = setup["language-server"]["frostline"]
    assert set(server) <= SERVER_KEYS
    assert isinstance(server["timeout"], int)
    Settings().updated(server["config"])


def test_every_language_names_it_with_documented_features(setup: dict[str, Any]):
    assert setup["language"]
    for language in setup["language"]:
        assert set(language) == {"name", "language-servers"}
        [entry] = [one for one in language["language-servers"] if one["name"] == "frostline"]
        assert set(entry) <= ENTRY_KEYS
        assert set(entry["only-features"]) <= FEATURES


def test_its_command_line_is_one_of_ours(setup: dict[str, Any], capsys: pytest.CaptureFixture[str]):
    server = setup["language-server"]["frostline"]
    assert server["command"] == "frostline"
    with pytest.raises(SystemExit) as ended:
        main([*server["args"], "--help"])
    assert ended.value.code == 0
    assert "serve an editor" in capsys.readouterr().out.lower()

"""Settings: checked once, explained when wrong, and never taken from a repository."""

from pathlib import Path

import pytest

from frostline import config
from frostline.cli import main
from frostline.config import Settings
from frostline.errors import BadSetting


def test_settings_come_by_both_spellings() -> None:
    settings = Settings().updated({"maxFileBytes": 10, "entropy_bound": 1, "exclude": ["*.sql"]})
    assert (settings.max_file_bytes, settings.entropy_bound, settings.exclude) == (
        10,
        1.0,
        ("*.sql",),
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"colour": "blue"}, "there is no setting 'colour'"),
        ({"order": "best"}, "one of: confidence, margin, entropy"),
        ({"threshold": 2.0}, "between 0 and 1"),
        ({"threshold": "high"}, "of type float"),
        ({"enabled": 1}, "of type bool"),
        ({"exclude": "*.py"}, "a list of strings"),
    ],
)
def test_a_wrong_setting_is_explained(values: dict, words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        Settings().updated(values)


def test_the_file_is_read_and_its_mistakes_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("FROSTLINE_CONFIG", str(path))
    assert config.load() == Settings()
    path.write_text("threads = 3\n")
    assert config.load().threads == 3
    path.write_text("threads = \n")
    assert main(["fill", "x.py:1"]) == 2
    assert "config.toml is not valid TOML" in capsys.readouterr().err

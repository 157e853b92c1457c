"""Settings, checked once at the door and then frozen.

They come from three places, later ones winning: the settings file of the user, the editor
(`initializationOptions` and `workspace/didChangeConfiguration`), and the command line. Workspace
files are never read: a repository must not decide what runs on a machine.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import platformdirs

from frostline.errors import BadSetting

EMBEDDED = "embedded"
# What a model on the hub is called.
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
# What runs a program is for the user alone to name: an editor's settings can come from a repository.
USER_ONLY = frozenset({"checks"})
RISKS = ("deletes", "protected", "large", "unverified")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user can set.

    Attributes:
        enabled: False means that nothing at all is sent to the worker.
        model: "embedded", the name of a pulled model (OWNER/NAME), the folder of one, or a GGUF file.
        peer: a model, named in the same ways, that is asked for what `model` says it cannot do; "" for none.
        device: "auto", "cpu", "cuda" or "mps".
        threads: processor threads of the model; 0 leaves it to torch.
        worker: "" starts one on demand; "scripted:FILE" plays recorded steps.
        order: which open slots are the surest: confidence, margin or entropy.
        threshold: settle every slot at or above this probability; 0 goes by the schedule alone.
        entropy_bound: nats; 0 for none.
        schedule: linear or cosine.
        steps: budget of denoise steps; 0 for as many as there are slots.
        temperature: 0 is greedy.
        length: slots of a hole; 0 chooses by the kind of hole.
        block_lines: longer rewrites go block by block of at most so many lines; 0 for all at once.
        quiet_below: mean confidence under which an unasked completion says nothing.
        completion_ms: how long the completion popup waits for a draft.
        inline_ms: how long ghost text waits for a draft.
        idle_s: seconds without a request until the model is unloaded.
        max_file_bytes: files above are left alone.
        exclude: globs, as in .gitignore, of files that the model must never see.
        respect_gitignore: whether files that git ignores are left alone too.
        max_edit_chars: an edit that changes more characters is refused.
        large_edit_chars: an edit that changes more characters waits for the user.
        protected: globs, as in .gitignore, of files whose edits wait for the user.
        risks: what makes an edit wait for the user: deletes, protected, large, unverified.
        checks: commands that a draft has to pass, run on a copy; only from the user's settings file.
        check_s: seconds that each may take.
    """

    enabled: bool = True
    model: str = EMBEDDED
    peer: str = ""
    device: str = "auto"
    threads: int = 0
    worker: str = ""
    order: str = "confidence"
    threshold: float = 0.9
    entropy_bound: float = 0.0
    schedule: str = "cosine"
    steps: int = 0
    temperature: float = 0.0
    length: int = 0
    block_lines: int = 16
    quiet_below: float = 0.25
    completion_ms: int = 1500
    inline_ms: int = 10_000
    idle_s: float = 900.0
    max_file_bytes: int = 4 * 1024 * 1024
    exclude: tuple[str, ...] = ()
    respect_gitignore: bool = True
    max_edit_chars: int = 200_000
    large_edit_chars: int = 4_000
    protected: tuple[str, ...] = ()
    risks: tuple[str, ...] = ("deletes", "protected", "large")
    checks: tuple[str, ...] = ()
    check_s: float = 10.0

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise BadSetting(f"setting {name!r} must be one of: {', '.join(allowed)}")
        for name, (low, high) in _RANGES.items():
            if not low <= getattr(self, name) <= high:
                raise BadSetting(f"setting {name!r} must lie between {low:g} and {high:g}")
        if not set(self.risks) <= set(RISKS):
            raise BadSetting(f"setting 'risks' may hold: {', '.join(RISKS)}")

    def updated(self, values: Mapping[str, Any], *, by_user: bool = True) -> Settings:
        """Return the settings with `values` (by their names, snake_case or camelCase) on top.

        Args:
            by_user: False for values that can come from elsewhere than the user's own settings.

        Raises:
            BadSetting: a name that there is not, a value of the wrong kind, or one that only the
                user's settings file may give.
        """
        changes: dict[str, Any] = {}
        for key, value in values.items():
            name = _snake(key)
            if name not in _KINDS:
                raise BadSetting(f"there is no setting {key!r}; see `frostline doctor --settings`")
            checked = _checked(name, value)
            if name in USER_ONLY and not by_user and checked != getattr(self, name):
                raise BadSetting(f"setting {name!r} is taken from {settings_file()} only")
            changes[name] = checked
        return replace(self, **changes)


_CHOICES = {
    "device": ("auto", "cpu", "cuda", "mps"),
    "order": ("confidence", "margin", "entropy"),
    "schedule": ("linear", "cosine"),
}
_RANGES: dict[str, tuple[float, float]] = {
    "threads": (0, 1024),
    "threshold": (0, 1),
    "entropy_bound": (0, 1000),
    "steps": (0, 100_000),
    "temperature": (0, 10),
    "length": (0, 100_000),
    "block_lines": (0, 100_000),
    "quiet_below": (0, 1),
    "completion_ms": (0, 600_000),
    "inline_ms": (0, 600_000),
    "idle_s": (0, 10**9),
    "max_file_bytes": (0, 10**12),
    "max_edit_chars": (0, 10**9),
    "large_edit_chars": (0, 10**9),
    "check_s": (0.1, 3600),
}
_KINDS: dict[str, Any] = get_type_hints(Settings)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _checked(name: str, value: Any) -> Any:
    kind = _KINDS[name]
    if get_args(kind):
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise BadSetting(f"setting {name!r} must be a list of strings")
        return tuple(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise BadSetting(f"setting {name!r} must be of type {kind.__name__}")
    return value


def settings_file() -> Path:
    """Return where the user's settings are; the file need not exist."""
    if given := os.environ.get("FROSTLINE_CONFIG"):
        return Path(given)
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "frostline" / "config.toml"


def models_folder() -> Path:
    """Return where pulled models are; it need not exist."""
    if given := os.environ.get("FROSTLINE_MODELS"):
        return Path(given).expanduser()
    return Path(platformdirs.user_data_dir("frostline")) / "models"


def pulled_folder(name: str) -> Path:
    """Return where the pulled model OWNER/NAME is; it need not exist."""
    return models_folder() / name


def model_path(name: str) -> str:
    """Return what the model called `name` is for every folder: its own, as a whole path.

    "embedded" and the name of a model that is not here stay as they are. A pulled model goes before
    a folder that happens to have the same relative path.
    """
    if name == EMBEDDED:
        return name
    if _HUB_NAME.fullmatch(name):
        if pulled_folder(name).is_dir():
            return str(pulled_folder(name))
        if not Path(name).is_dir():
            return name
    return os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111 - this one never raises


def load() -> Settings:
    """Return the user's settings from the settings file, or the defaults without one.

    Raises:
        BadSetting: the file cannot be read as settings.
    """
    path = settings_file()
    try:
        data = path.read_bytes()
    except OSError:
        return Settings()
    try:
        return Settings().updated(tomllib.loads(data.decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"{path} is not valid TOML: {error}") from error
    except BadSetting as error:
        raise BadSetting(f"{path}: {error}") from error


def described() -> list[tuple[str, Any, str]]:
    """Return each setting's name, default and description, in order."""
    text = (Settings.__doc__ or "").partition("Attributes:")[2]
    words: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, meaning = line.strip().partition(":")
        if colon and name in _KINDS:
            words[name] = meaning.strip()
    return [(one.name, one.default, words[one.name]) for one in fields(Settings)]

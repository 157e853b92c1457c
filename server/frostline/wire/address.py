"""Where a worker listens: a socket that only its user can open.

A Unix socket of mode 0600 in a directory of mode 0700; where there are no Unix sockets, a TCP port
on this machine and a token, both in a file that only the user can read. One address for each model,
device and version, so that all editors of a user share one process and no two versions meet.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from frostline import __version__
from frostline.config import Settings
from frostline.errors import WorkerLost


@dataclass(frozen=True, slots=True)
class Address:
    """A place to listen at. `path` is the socket, or with `tcp` the file with port and token."""

    path: Path
    tcp: bool = False

    @property
    def log(self) -> Path:
        """Where a worker started on demand writes what it has to say."""
        return self.path.with_suffix(".log")

    @property
    def lock(self) -> Path:
        """Held by the one worker that listens here."""
        return self.path.with_suffix(".lock")


def address_for(settings: Settings) -> Address:
    """Return where the worker for these settings listens."""
    what = json.dumps([settings.model, settings.device, settings.threads, __version__])
    name = hashlib.sha256(what.encode()).hexdigest()[:12]
    tcp = sys.platform == "win32"
    return Address(private_directory() / f"{name}.{'json' if tcp else 'sock'}", tcp)


def private_directory() -> Path:
    """Return the directory for sockets, made if need be.

    Raises:
        WorkerLost: it is somebody else's, or others can write to it.
    """
    given = os.environ.get("FROSTLINE_RUNTIME_DIR")
    with warnings.catch_warnings():
        # Without XDG_RUNTIME_DIR there is a directory of our own in /tmp, checked below.
        warnings.simplefilter("ignore")
        path = Path(given) if given else platformdirs.user_runtime_path("frostline")
    try:
        path.mkdir(parents=True, mode=0o700, exist_ok=True)
    except OSError:
        path = Path(platformdirs.user_cache_dir("frostline")) / "run"
        path.mkdir(parents=True, mode=0o700, exist_ok=True)
    if hasattr(os, "getuid"):
        found = path.stat()
        if found.st_uid != os.getuid():
            raise WorkerLost(
                f"{path} belongs to another user; set FROSTLINE_RUNTIME_DIR to your own"
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            path.chmod(0o700)
    return path


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, from the first moment on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def read_port(path: Path) -> tuple[int, str]:
    """Return the port and the token that a worker wrote.

    Raises:
        WorkerLost: there is no worker, or it is not done writing.
    """
    try:
        values = json.loads(path.read_text())
        return int(values["port"]), str(values["token"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkerLost(f"no worker has announced itself in {path}") from error

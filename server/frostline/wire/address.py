"""Where a worker listens: a socket that only its user can open.

A Unix socket of mode 0600 in a directory of mode 0700; where there are no Unix sockets, a TCP port
on this machine and a token, both in a file that only the user can read. One address for each model,
device and version, so that all editors of a user share one process and no two versions meet.
"""

from __future__ import annotations

import contextlib
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

# A socket's whole path has at most 103 bytes on macOS, 107 on Linux; ours adds a name of 18.
_LONGEST = 85


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
        WorkerLost: it cannot be made, is somebody else's, or its name is too long for a socket.
    """
    given = os.environ.get("FROSTLINE_RUNTIME_DIR")
    for path in [Path(given)] if given else _usual():
        with contextlib.suppress(OSError):
            path.mkdir(parents=True, mode=0o700, exist_ok=True)
            break
    else:
        raise WorkerLost(
            f"{path} cannot be made; set FROSTLINE_RUNTIME_DIR to a folder of your own"
        )
    if hasattr(os, "getuid"):
        _make_private(path)
    if len(os.fsencode(path)) > _LONGEST:
        raise WorkerLost(f"{path} is too long for a socket; set FROSTLINE_RUNTIME_DIR to a shorter")
    return path


def _usual() -> list[Path]:
    paths = [Path(platformdirs.user_cache_dir("frostline")) / "run"]
    with warnings.catch_warnings(), contextlib.suppress(OSError):
        # Without XDG_RUNTIME_DIR there is a directory of our own in /tmp, checked like any other.
        warnings.simplefilter("ignore")
        paths.insert(0, platformdirs.user_runtime_path("frostline"))
    return paths


def _make_private(path: Path) -> None:
    us, found = os.getuid(), path.stat()
    # Whoever owns the folder around it, or a link to it, could put another one in its place.
    if {found.st_uid, path.lstat().st_uid} != {us} or path.parent.stat().st_uid not in (0, us):
        raise WorkerLost(f"{path} belongs to another user; set FROSTLINE_RUNTIME_DIR to your own")
    if stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(0o700)


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

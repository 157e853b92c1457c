"""What is learnt from: a list of releases, and their files as pip fetches them.

A wheel is read where it lies; nothing of it is installed, imported or run.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from frostline.errors import UsageError

Say = Callable[[str], None]

STANDARD_LIBRARY = "standard library"


@dataclass(frozen=True, slots=True)
class Release:
    """One pinned release of a package."""

    name: str
    version: str
    licence: str


@dataclass(frozen=True, slots=True)
class Sources:
    """The list that ships with the recipe."""

    package: tuple[Release, ...]
    held_out: tuple[Release, ...]
    benchmark: tuple[Release, ...]


@dataclass(frozen=True, slots=True)
class File:
    """One file of Python, and whose it is."""

    package: str
    path: str
    text: str


def listed() -> Sources:
    """Return the list of releases."""
    values = tomllib.loads(Path(__file__).with_name("sources.toml").read_text("utf-8"))
    return Sources(**{kind: tuple(Release(**row) for row in rows) for kind, rows in values.items()})


def fetch(release: Release, folder: Path, say: Say) -> Path | None:
    """Return the wheel of `release` in `folder`, fetched by pip if it is not there; None without one.

    Wheels only: to look into a source archive, pip would have to run what is in it.
    """
    place = folder / f"{release.name}-{release.version}"
    if not place.is_dir():
        part = place.with_name(place.name + ".part")
        command = [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--only-binary", ":all:", "--dest", str(part)),
            f"{release.name}=={release.version}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            say(f"{release.name} {release.version} is left out: {reason}")
            return None
        part.rename(place)
    return next(iter(sorted(place.glob("*.whl"))), None)


def in_wheel(package: str, wheel: Path) -> Iterator[File]:
    """Yield the Python files of a wheel, in the order of their names."""
    with zipfile.ZipFile(wheel) as opened:
        for name in sorted(opened.namelist()):
            if name.endswith(".py") and (text := decoded(opened.read(name))) is not None:
                yield File(package, name, text)


def in_standard_library() -> Iterator[File]:
    """Yield the Python files of this interpreter's own library, without what is installed in it."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if "-packages/" in name:
            continue
        if (text := decoded(path.read_bytes())) is not None:
            yield File(STANDARD_LIBRARY, name, text)


def decoded(content: bytes) -> str | None:
    """Return UTF-8 content as text with LF line ends, or None when it is something else."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def must_have(release: Release, folder: Path, say: Say) -> Path:
    """Return the wheel of a release that nothing can be done without.

    Raises:
        UsageError: pip cannot get it.
    """
    wheel = fetch(release, folder, say)
    if wheel is None:
        raise UsageError(
            f"{release.name} {release.version} cannot be fetched, and is needed; "
            "check that pip reaches a package index"
        )
    return wheel

"""The models that were pulled: a folder for each, with a list of its files and their hashes.

A model is pulled into a folder beside its own, which takes its place when every file is there and is
what the hub says it is. Only what is read later is pulled: safetensors, JSON, and a tokenizer's text
files. A revision is pinned to its commit before anything is fetched. Loads no torch.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from frostline import config
from frostline.errors import ModelUnusable
from frostline.models import folder as folders

LIST = "frostline-pulled.json"
_KEPT = re.compile(r"[^/]+\.(safetensors|json|jinja)|(merges|vocab)\.txt")
# Written by trainers, read by nobody here.
_LEFT = {"trainer_state.json", "optimizer.json", "scheduler.json", LIST, "frostline.json"}
_CHUNK = 1 << 20


class File(msgspec.Struct, frozen=True):
    """One file of a model: its hash is a SHA-256, or for small files git's own SHA-1 of it."""

    name: str
    size: int
    sha256: str = ""
    git_sha1: str = ""


class Pulled(msgspec.Struct, frozen=True):
    """What there is to pull, or was pulled."""

    name: str
    revision: str
    licence: str
    files: tuple[File, ...]

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


Progress = Callable[[int], None]


class Hub(Protocol):
    """Where models are pulled from."""

    def describe(self, name: str, revision: str | None) -> Pulled:
        """Return what the model called `name` is at `revision`, all its files told."""

    def fetch(self, model: Pulled, file: File, path: Path, progress: Progress) -> None:
        """Write a file to `path`, on from what stands there; tell `progress` of each stretch of bytes."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """A file that is not what was pulled, and in which way."""

    file: str
    what: str


def wanted(model: Pulled) -> Pulled:
    """Return `model` with only the files that are read here.

    Raises:
        ModelUnusable: there are no safetensors among them.
    """
    files = tuple(
        file for file in model.files if _KEPT.fullmatch(file.name) and file.name not in _LEFT
    )
    if not any(file.name.endswith(".safetensors") for file in files):
        raise ModelUnusable(
            f"{model.name} has no safetensors files; weights of other kinds are not fetched"
        )
    return msgspec.structs.replace(model, files=files)


def pull(model: Pulled, hub: Hub, progress: Progress) -> Path:
    """Fetch the files of `model` that are not there yet, and return its folder.

    Small files come first: what cannot be run is refused before its weights are fetched.

    Raises:
        ModelUnusable: it cannot be run, has no room here, or is not what the hub says it is.
    """
    target = config.pulled_folder(model.name)
    unfinished = target.with_name(target.name + ".unfinished")
    _begin(model, unfinished)
    _check_room(model, unfinished)
    try:
        weights = [file for file in model.files if file.name.endswith(".safetensors")]
        for file in [one for one in model.files if one not in weights]:
            _fetch(model, file, unfinished, hub, progress)
        folders.read(unfinished)
        for file in weights:
            _fetch(model, file, unfinished, hub, progress)
    except OSError as error:
        raise ModelUnusable(f"{unfinished} cannot be written: {error}") from error
    if target.exists():
        shutil.rmtree(target)
    unfinished.rename(target)
    return target


def _begin(model: Pulled, unfinished: Path) -> None:
    """Make the folder of an unfinished pull; what is left of another revision's goes."""
    try:
        if unfinished.is_dir() and _listed(unfinished) != model:
            shutil.rmtree(unfinished)
        unfinished.mkdir(parents=True, exist_ok=True)
        (unfinished / LIST).write_bytes(msgspec.json.format(msgspec.json.encode(model)))
    except OSError as error:
        raise ModelUnusable(f"{unfinished} cannot be written: {error}") from error


def _check_room(model: Pulled, unfinished: Path) -> None:
    there = sum(path.stat().st_size for path in unfinished.iterdir())
    needed, free = model.bytes - there, shutil.disk_usage(unfinished).free
    if needed > free:
        raise ModelUnusable(
            f"{model.name} needs {needed / 1e9:.1f} GB more, and {free / 1e9:.1f} GB are free "
            f"at {unfinished.parent}; make room, or set FROSTLINE_MODELS to another folder"
        )


def _fetch(model: Pulled, file: File, into: Path, hub: Hub, progress: Progress) -> None:
    path, part = into / file.name, into / f"{file.name}.part"
    if path.is_file() and not differs(path, file):
        progress(file.size)
        return
    path.unlink(missing_ok=True)
    if part.is_file():
        progress(part.stat().st_size)
    hub.fetch(model, file, part, progress)
    if what := differs(part, file):
        # Nothing of it can be trusted, so the next pull begins this file anew.
        part.unlink(missing_ok=True)
        raise ModelUnusable(
            f"{file.name} of {model.name} {what}; it was thrown away, pull the model again"
        )
    part.rename(path)


def differs(path: Path, file: File) -> str:
    """Return in which way the file at `path` is not what the hub says, nothing when it is."""
    try:
        size = path.stat().st_size
        if size != file.size:
            return f"has {size} bytes and not {file.size}"
        found = hashlib.sha256() if file.sha256 else hashlib.sha1(usedforsecurity=False)
        if not file.sha256:
            found.update(b"blob %d\0" % size)
        with path.open("rb") as opened:
            while chunk := opened.read(_CHUNK):
                found.update(chunk)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if found.hexdigest() != (file.sha256 or file.git_sha1):
        return "does not have the hash that its makers published"
    return ""


def pulled() -> Iterator[Pulled]:
    """Yield each model that was pulled, by name."""
    for path in sorted(config.models_folder().glob(f"*/*/{LIST}")):
        model = _listed(path.parent)
        if model is not None and path.parent == config.pulled_folder(model.name):
            yield model


def found(name: str) -> Pulled:
    """Return the pulled model called `name`.

    Raises:
        ModelUnusable: there is none.
    """
    for model in pulled():
        if model.name == name:
            return model
    raise ModelUnusable(f"{name} was not pulled here; `frostline models` lists what was")


def verify(model: Pulled) -> Sequence[Complaint]:
    """Return which files of a pulled model are not what was pulled."""
    folder = config.pulled_folder(model.name)
    checked = ((file.name, differs(folder / file.name, file)) for file in model.files)
    return [Complaint(name, what) for name, what in checked if what]


def remove(model: Pulled) -> None:
    """Delete a pulled model.

    Raises:
        ModelUnusable: its folder cannot be deleted.
    """
    folder = config.pulled_folder(model.name)
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise ModelUnusable(f"{folder} cannot be deleted: {error.strerror}") from error


def _listed(folder: Path) -> Pulled | None:
    try:
        return msgspec.json.decode((folder / LIST).read_bytes(), type=Pulled)
    except (OSError, msgspec.MsgspecError):
        return None

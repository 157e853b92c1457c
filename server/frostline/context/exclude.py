"""Which files must never reach the worker.

Four reasons, asked in this order: the name is that of a secret, the user's globs, git ignores it,
it is too large. A file's content is never read here; the `.gitignore` files above it are.

Deliberately absent: git's own ignore files outside the tree (`.git/info/exclude`, the global one),
and git's exception for a file that is ignored but tracked: what is ignored stays private.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from pathspec import GitIgnoreSpec

from frostline.config import Settings
from frostline.context.grammar import path_of
from frostline.errors import BadSetting

# Names of files that hold secrets by custom; compared without regard to case.
SECRET_NAMES: tuple[str, ...] = (
    ".env*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.p8",
    "*.jks",
    "*.keystore",
    "*.kdb",
    "*.kdbx",
    "*.ppk",
    "*.gpg",
    "*.pgp",
    "*.ovpn",
    "*.tfvars",
    "*.tfstate",
    "*.tfstate.*",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".boto",
    ".s3cfg",
    ".dockercfg",
    ".git-credentials",
    ".htpasswd",
    ".vault-token",
    "credentials*",
    "secrets.*",
    "secret.*",
    "service-account*.json",
    "service_account*.json",
    "kubeconfig",
    ".*_history",
)
# Folders whose content is private whatever it is called.
SECRET_FOLDERS: frozenset[str] = frozenset(
    {".aws", ".azure", ".docker", ".git", ".gnupg", ".kube", ".password-store", ".ssh"}
)
_SECRETS = tuple((name, re.compile(translate(name))) for name in SECRET_NAMES)


@dataclass(frozen=True, slots=True)
class Exclusions:
    """What is kept from the worker.

    Attributes:
        globs: the user's, written as in .gitignore; one that starts with "!" lets a file through
            that the list of secrets or an earlier glob would keep.
        roots: folders of the workspace.
        max_file_bytes: the largest file that may be sent.
        respect_gitignore: whether what git ignores is kept back.
    """

    globs: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    max_file_bytes: int = 4 * 1024 * 1024
    respect_gitignore: bool = True

    @classmethod
    def of(cls, settings: Settings, roots: tuple[str, ...] = ()) -> Exclusions:
        """Return the exclusions of these settings in a workspace with these folders.

        Raises:
            BadSetting: `exclude` holds something that is no glob.
        """
        try:
            _compiled(settings.exclude)
        except ValueError as error:
            raise BadSetting(
                f"setting 'exclude' holds something that is no glob: {error}"
            ) from None
        return cls(
            globs=settings.exclude,
            roots=roots,
            max_file_bytes=settings.max_file_bytes,
            respect_gitignore=settings.respect_gitignore,
        )

    def reason(self, uri_or_path: str, size: int | None) -> str | None:
        """Return why a file must not reach the worker, in one sentence, or None when it may.

        Cheap enough to be asked at each keystroke: patterns are compiled once, and a .gitignore is
        read again only when it changed.

        Args:
            uri_or_path: a path, a file URI, or the URI of a buffer that has no file.
            size: of its content in bytes; None when it is not known.
        """
        path = path_of(uri_or_path)
        named = uri_or_path if path == uri_or_path else path
        for candidate in _same_file(path):
            if why := self._private(candidate):
                return f"{Path(named).name} is kept from the model: {why}."
        if size is not None and size > self.max_file_bytes:
            limit = _amount(self.max_file_bytes)
            return f"{Path(named).name} is too large for the model: {_amount(size)}, limit {limit}."
        return None

    def _private(self, path: Path) -> str | None:
        relative = self._relative(path)
        globbed = _compiled(self.globs).check_file(relative)
        if globbed.include is False:
            return None
        if globbed.include:
            assert globbed.index is not None
            glob = list(filter(None, self.globs))[globbed.index]
            return f"the setting `exclude` has {glob!r}"
        if secret := _secret(path):
            return f'it may hold secrets ({secret}; `exclude` with "!{path.name}" lets it through)'
        if self.respect_gitignore and (ignored := self._ignored(path)):
            return f"{ignored} ignores it"
        return None

    def _relative(self, path: Path) -> str:
        for root in self._roots():
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return path.as_posix().lstrip("/")

    def _roots(self) -> Iterator[Path]:
        for root in self.roots:
            yield from _same_file(path_of(root))

    def _ignored(self, path: Path) -> str | None:
        """Return the .gitignore that ignores a file, or None."""
        if not path.is_absolute():
            return None
        tops = [root for root in self._roots() if path.is_relative_to(root)]
        folders = list(_folders(path, max(tops, key=lambda top: -len(top.parts), default=None)))
        for depth in range(1, len(folders) + 1):
            # A folder that is ignored is ignored with all in it, whatever a deeper file says.
            target = folders[depth] if depth < len(folders) else path
            ending = "/" if target is not path else ""
            for folder in reversed(folders[:depth]):
                spec = _gitignore(folder)
                if spec is None:
                    continue
                verdict = spec.check_file(target.relative_to(folder).as_posix() + ending).include
                if verdict:
                    return (folder / ".gitignore").relative_to(folders[0]).as_posix()
                if verdict is False:
                    break
        return None


def _same_file(path: str) -> Iterator[Path]:
    """Return the file as it is named and, when a link is on the way, as it is."""
    named = Path(os.path.normpath(path))
    yield named
    if named.is_absolute():
        real = Path(os.path.realpath(named))
        if real != named:
            yield real


def _secret(path: Path) -> str | None:
    name = path.name.lower()
    for pattern, compiled in _SECRETS:
        if compiled.match(name):
            return pattern
    for part in path.parts[:-1]:
        if part.lower() in SECRET_FOLDERS:
            return f"{part}/"
    return None


def _folders(path: Path, root: Path | None) -> Iterator[Path]:
    """Return the folders whose .gitignore counts, from the top of the repository to the file's."""
    above = list(path.parents)
    top = next((folder for folder in above if _is_repository(str(folder))), root)
    if top is None:
        return
    if root is not None and len(root.parts) < len(top.parts):
        top = root
    yield from reversed([folder for folder in above if folder.is_relative_to(top)])


@functools.lru_cache(maxsize=16)
def _compiled(globs: tuple[str, ...]) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines(globs)


@functools.lru_cache(maxsize=1024)
def _is_repository(folder: str) -> bool:
    return Path(folder, ".git").exists()


def _gitignore(folder: Path) -> GitIgnoreSpec | None:
    path = folder / ".gitignore"
    try:
        state = path.stat()
    except (OSError, ValueError):
        return None
    return _read_gitignore(path, state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=256)
def _read_gitignore(path: Path, mtime_ns: int, size: int) -> GitIgnoreSpec | None:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return None
    return GitIgnoreSpec.from_lines(filter(_is_pattern, text.split("\n")))


def _is_pattern(line: str) -> bool:
    # git passes over a line that it cannot read, and so do we, instead of over the file.
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _amount(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB" if size >= 100_000 else f"{size:,} bytes"

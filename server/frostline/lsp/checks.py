"""A command of the user's own at the barrier: a linter, a type checker, a test.

It is run on copies in a folder of its own, never on the file: once on the text as it is and once on
the text as it would be. Only what it says anew of the second counts. Which command that is comes from
the user's own settings file alone; neither an editor nor a repository can name one.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from frostline.core.text import Document, TextEdit, apply
from frostline.lsp.findings import path_of

# What a complaint is long enough to be recognised by, and short enough to be shown.
_SHOWN = 200


def complaint(
    document: Document, edits: Sequence[TextEdit], commands: Sequence[str], limit_s: float
) -> str:
    """Return the first new complaint of the first command that has one, or nothing.

    A command that cannot be started or does not end in time is a complaint too: a check that does
    not run checks nothing.
    """
    after = apply(document.text, edits)
    for command in commands:
        before = _lines(command, document, document.text, limit_s)
        now = _lines(command, document, after, limit_s)
        if isinstance(now, str):
            return now
        known = set() if isinstance(before, str) else set(before)
        new = [line for line in now if line not in known]
        if new:
            return f"{shlex.split(command)[0]}: {new[0][:_SHOWN]}"
    return ""


def _lines(command: str, document: Document, text: str, limit_s: float) -> list[str] | str:
    """Return what a command says of a text, without places; a sentence where it does not run.

    Nothing is said by a command that ends with status 0.
    """
    path = path_of(document.uri)
    name = path.name if path is not None else f"untitled.{document.language}"
    with tempfile.TemporaryDirectory(prefix="frostline-check-") as folder:
        copy = Path(folder) / name
        copy.write_bytes(text.encode("utf-8", "surrogatepass"))
        words = [*shlex.split(command), str(copy)]
        try:
            process = subprocess.Popen(
                words,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return f"The check {words[0]!r} could not be started: {error.strerror or error}."
        try:
            out, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return f"The check {words[0]!r} took longer than {limit_s:g} seconds."
        if process.returncode == 0:
            return []
        said = out.decode("utf-8", "replace").replace(str(copy), name)
        return [_without_place(line) for line in said.split("\n") if line.strip()]


def _end(process: subprocess.Popen[bytes]) -> None:
    # With whatever it started itself.
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _without_place(line: str) -> str:
    """Return a complaint without numbers: an edit above it moves the lines of an old one."""
    return "".join(letter for letter in line if not letter.isdigit()).strip()

"""Emacs' eglot and editors/emacs/frostline-eglot.el, against the real server, in batch mode.

Emacs is a package of the system, not of Python: without it these tests say so and are skipped.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from editors.neovim import ROOT, frostline_on_path

SETUP = ROOT / "editors" / "emacs" / "frostline-eglot.el"
SHARED = Path(__file__).with_name("emacs.el")
BASE = ["emacs", "--batch", "--funcall", "package-initialize"]


@functools.cache
def missing() -> str:
    """Return why there is no Emacs with an eglot that can be tested, or nothing."""
    if shutil.which("emacs") is None:
        return "no Emacs here: apt-get install emacs-nox elpa-eglot, or Emacs 29 or later"
    if subprocess.run([*BASE, "--eval", "(require 'eglot)"], capture_output=True).returncode:
        return "this Emacs has no eglot: apt-get install elpa-eglot"
    return ""


pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("_emacs_is_here")]

FUNCTION = "def area(r):\n    return 3.14 * r * r\n"
STEPS = ["░░░", "return math.░░ * r", "return math.pi * r ** 2"]
AFTER = "def area(r):\n    return math.pi * r ** 2\n"


class Emacs:
    """Runs Lisp in a new Emacs that has visited one file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "a.py"

    def run(self, text: str | bytes, canvases: list[str], code: str) -> dict[str, Any]:
        """Return what the Lisp `code` tells; the worker plays `canvases` for every gap."""
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())
        script = self.folder / "script.json"
        script.write_text(json.dumps({"runs": [[canvases]], "pause_ms": 20}))
        frostline_on_path(self.folder / "bin", "--worker", f"scripted:{script}")
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        lisp = f'(progn (visit "{self.path}") {code})'
        done = subprocess.run(
            [*BASE, "--load", str(SETUP), "--load", str(SHARED), "--eval", lisp],
            env={**os.environ, "HOME": str(self.folder), "PATH": path, "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return told


@pytest.fixture
def _emacs_is_here() -> None:
    if reason := missing():
        pytest.skip(reason)


@pytest.fixture
def emacs(tmp_path: Path) -> Emacs:
    return Emacs(tmp_path)


def test_a_command_rewrites_the_region_in_one_undo_step(emacs: Emacs):
    told = emacs.run(
        FUNCTION,
        STEPS,
        """(apply #'frostline-rewrite (select "return 3.14 * r * r"))
           (let ((at-once (buffer-string)) (modified (buffer-modified-p)) after)
             (drafted)
             (setq after (buffer-string))
             (let ((count changes))
               (undo-once)
               (tell :atOnce at-once :modified modified :after after :changes count
                     :undone (buffer-string))))""",
    )
    assert told["atOnce"] == FUNCTION
    assert told["modified"] is None
    assert told["after"] == AFTER
    assert told["changes"] == 1
    assert told["undone"] == FUNCTION
    assert "The text changed" not in told["said"], "the server heard of its edit"


def test_what_was_typed_before_is_another_undo_step(emacs: Emacs):
    told = emacs.run(
        FUNCTION,
        STEPS,
        """(goto-char (point-max))
           (insert "# mine\\n")
           (apply #'frostline-rewrite (select "return 3.14 * r * r"))
           (drafted)
           (let ((after (buffer-string)))
             (undo-once)
             (tell :after after :undone (buffer-string)))""",
    )
    assert told["after"] == AFTER + "# mine\n"
    assert told["undone"] == FUNCTION + "# mine\n"


@pytest.mark.parametrize(
    ("text", "place", "title", "canvas", "after"),
    [
        (
            "class A:\n    def f(self):\n        ...\n\n    def g(self):\n        pass\n",
            "...",
            "Fill 2 unfinished bodies (Frostline)",
            "return 7",
            "class A:\n    def f(self):\n        return 7\n\n    def g(self):\n        return 7\n",
        ),
        (
            "value = (1 +) * r\n",
            "+",
            "Repair the syntax here (Frostline)",
            "+ 2",
            "value = (1 + 2) * r\n",
        ),
    ],
    ids=["bodies", "repair"],
)
def test_a_code_action_is_one_undo_step(
    emacs: Emacs, text: str, place: str, title: str, canvas: str, after: str
):
    told = emacs.run(
        text,
        ["░", canvas],
        f"""(select "{place}")
           (let ((before (buffer-string)))
             (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "{title}")))
               (eglot-code-actions (point) (point) nil t))
             (until (lambda () (not (equal before (buffer-string)))) "the action's edit")
             (let ((after (buffer-string)))
               (undo-once)
               (tell :after after :undone (buffer-string))))""",
    )
    assert told["after"] == after
    assert told["undone"] == text


def test_a_code_action_for_an_older_text_is_refused(emacs: Emacs):
    """eglot gets a command with its action, not an edit, and may run it whenever it likes."""
    told = emacs.run(
        FUNCTION,
        STEPS,
        """(let* ((place (select "return 3.14 * r * r"))
                  (action (car (eglot-code-actions (car place) (cadr place))))
                  (command (plist-get action :command)))
             (goto-char (point-min))
             (insert "# mine\\n")
             (eglot--signal-textDocument/didChange)
             (eglot-execute-command (eglot-current-server) (plist-get command :command)
                                    (plist-get command :arguments))
             (tell :title (plist-get action :title) :text (buffer-string)))""",
    )
    assert told["title"] == "Rewrite the selection (Frostline)"
    assert told["text"] == "# mine\n" + FUNCTION
    assert "The text changed while it was being drafted" in told["said"]


def test_completion_puts_in_the_whole_draft(emacs: Emacs):
    told = emacs.run(
        "def area(r):\n    \n    print(r)\n",
        ["░", "if r:\n        return math.pi * r ** 2"],
        """(forward-line 1)
           (end-of-line)
           (completion-at-point)
           (tell :text (buffer-string))""",
    )
    after = "def area(r):\n    if r:\n        return math.pi * r ** 2\n    print(r)\n"
    assert told["text"] == after


def test_the_gap_at_point_is_filled(emacs: Emacs):
    told = emacs.run(
        "name = 'é😀'; value = max(, 1)\n",
        ["░", "best"],
        """(select ", 1")
           (frostline-fill)
           (drafted)
           (tell :text (buffer-string))""",
    )
    assert told["text"] == "name = 'é😀'; value = max(best, 1)\n"


def test_everything_outside_the_hole_stays_on_disk_as_it_was(emacs: Emacs):
    """CRLF, a byte order mark, form feeds, U+2028, a lone mark, tabs, no newline at the end."""
    before = (
        "\ufeffimport math\r\n\f\r\nrule = 'a\u2028b'  # \f é 😀\r\n\r\n"
        "def area(r):\r\n\tif r:\t# \u0301😀\r\n\t\tx = '😀'; return «3.14 * r»\r\n\f\r\n# e\u2028nd"
    )
    start, old, end = before.replace("»", "«").split("«")
    told = emacs.run(
        (start + old + end).encode(),
        ["░░", "(\n\t\t\t░", "(\n\t\t\tmath.pi * r\n\t\t)"],
        """(apply #'frostline-rewrite (select "3.14 * r"))
           (drafted)
           (save-buffer)
           (tell :coding (symbol-name buffer-file-coding-system))""",
    )
    assert told["coding"] == "utf-8-with-signature-dos"
    assert emacs.path.read_bytes() == (start + "(\r\n\t\t\tmath.pi * r\r\n\t\t)" + end).encode()


def test_typing_while_it_is_drafted_drops_the_draft(emacs: Emacs):
    told = emacs.run(
        FUNCTION,
        ["░", *["░"] * 20, "return 0"],
        """(apply #'frostline-rewrite (select "return 3.14 * r * r"))
           (accept-process-output nil 0.05)
           (goto-char (point-min))
           (insert "# mine\\n")
           (drafted)
           (tell :after (buffer-string))""",
    )
    assert told["after"] == "# mine\n" + FUNCTION
    assert "The text changed while it was being drafted" in told["said"]


def test_cancel_stops_the_draft_and_a_killed_server_leaves_the_buffer_alone(emacs: Emacs):
    told = emacs.run(
        FUNCTION,
        ["░", *["░"] * 10_000, "return 0"],
        """(apply #'frostline-rewrite (select "return 3.14 * r * r"))
           (frostline-cancel)
           (drafted)
           (apply #'frostline-rewrite (select "return 3.14 * r * r"))
           (signal-process (jsonrpc--process (eglot-current-server)) 'KILL)
           (until (lambda () (null (eglot-current-server))) "eglot sees that the server is gone")
           (tell :text (buffer-string) :changes changes :modified (buffer-modified-p))""",
    )
    assert told["text"] == FUNCTION
    assert told["changes"] == 0
    assert told["modified"] is None


def test_the_setup_compiles_without_a_warning(tmp_path: Path):
    copy = tmp_path / SETUP.name
    shutil.copy(SETUP, copy)
    strict = "(setq byte-compile-error-on-warn t)"
    command = [*BASE, "--eval", strict, "--funcall", "batch-byte-compile", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

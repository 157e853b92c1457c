"""`fill --write` and `rewrite --write` when the disk is full or the server is killed: all of the edit or none."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pty = pytest.importorskip("pty", reason="terminals and limits of a process are POSIX")
resource = pytest.importorskip("resource", reason="terminals and limits of a process are POSIX")
pytestmark = pytest.mark.e2e

COMMAND = [sys.executable, "-P", "-m", "frostline"]
LINE = "x = 1\n"
TEXT = LINE * 20_000


@pytest.fixture(autouse=True)
def _scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that writes one thing, and takes its time where a test asks for that."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"runs": [[["░", "2"]]], "pause_ms": 1}))
    (tmp_path / "settings.toml").write_text(f"worker = 'scripted:{script}'\n")
    monkeypatch.setenv("FROSTLINE_CONFIG", str(tmp_path / "settings.toml"))


def project(folder: Path) -> tuple[Path, Path]:
    """Make a file with a mode of its own and a link to it; return both."""
    folder.mkdir(exist_ok=True)
    real, link = folder / "real.py", folder / "link.py"
    real.write_text(TEXT)
    real.chmod(0o640)
    link.symlink_to("real.py")
    return real, link


def untouched(real: Path, link: Path) -> bool:
    return (
        real.read_text() == TEXT
        and stat.S_IMODE(real.stat().st_mode) == 0o640
        and link.is_symlink()
        and {path.name for path in real.parent.iterdir()} == {"real.py", "link.py"}
    )


def test_a_limit_on_files_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    real, link = project(tmp_path / "project")
    result = subprocess.run(
        [*COMMAND, "fill", str(link), "--range", "1:5-1:6", "--write"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (len(TEXT) // 2,) * 2),
    )
    assert result.returncode == 1
    assert result.stderr == (
        f"frostline: {link} could not be written (File too large); it is as it was\n"
    )
    assert untouched(real, link)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    disk, probe = tmp_path / "disk", "unshare --user --map-root-user --mount"
    disk.mkdir()
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            [*probe.split(), "mount", "-t", "tmpfs", "none", str(disk)],
            capture_output=True,
            check=False,
        ).returncode
    ):
        pytest.skip("no file system of one's own can be mounted here")
    script = f"""
        set -e
        mount -t tmpfs -o size=160k none {disk}
        cp -P -p {tmp_path}/project/* {disk}
        ! {" ".join(COMMAND)} rewrite {disk}/link.py:1 --write
        cmp {disk}/real.py {tmp_path}/project/real.py
        test -L {disk}/link.py
        ls -A {disk}; stat -c %a {disk}/real.py
    """
    project(tmp_path / "project")
    result = subprocess.run(
        [*probe.split(), "bash", "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "link.py\nreal.py\n640\n"
    assert result.stderr == (
        f"frostline: {disk}/link.py could not be written (No space left on device); "
        "it is as it was\n"
    )


def test_a_server_that_is_killed_while_it_drafts_is_said_and_the_file_is_as_it_was(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"runs": [[["░"] * 100]], "pause_ms": 50}))
    real, link = project(tmp_path / "project")
    ours, theirs = pty.openpty()
    command = [*COMMAND, "rewrite", f"{link}:1", "--write"]
    with subprocess.Popen(command, stderr=theirs) as process:
        words = b""
        while b"denoising, step 2" not in words:
            words += os.read(ours, 4096)
        (server,) = psutil.Process(process.pid).children()
        server.kill()
    words += os.read(ours, 4096)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 1
    assert words.endswith(b"frostline: the language server stopped; run it again\r\n")
    assert b"Traceback" not in words
    assert untouched(real, link)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "theirs.py"
    path.write_text("x = 1\n")
    os.chown(path, 1234, 2345)
    subprocess.run([*COMMAND, "rewrite", f"{path}:1", "--write"], check=True, capture_output=True)
    assert path.read_text() != "x = 1\n"
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)

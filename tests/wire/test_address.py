"""Where a worker listens: one place for each model, and nobody else's."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from frostline.config import Settings
from frostline.errors import WorkerLost
from frostline.wire import address as addresses
from frostline.wire.address import Address, address_for, private_directory, read_port, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_directory_is_made_for_its_user_alone(runtime: Path) -> None:
    assert not runtime.exists()
    assert private_directory() == runtime
    assert mode(runtime) == 0o700


def test_a_directory_that_others_can_read_is_closed(runtime: Path) -> None:
    runtime.mkdir(mode=0o755)
    runtime.chmod(0o777)
    private_directory()
    assert mode(runtime) == 0o700


def test_a_directory_of_somebody_else_is_refused(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private_directory()
    us = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: us + 1)
    with pytest.raises(WorkerLost, match="belongs to another user; set FROSTLINE_RUNTIME_DIR"):
        private_directory()


def test_a_directory_inside_somebody_elses_is_refused(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.mkdir(mode=0o700)
    theirs = runtime.parent.stat()
    stat_of = Path.stat

    def told(self: Path, **how: bool) -> os.stat_result:
        if self == runtime.parent:
            return os.stat_result((*theirs[:4], theirs.st_uid + 1, *theirs[5:]))
        return stat_of(self, **how)

    monkeypatch.setattr(Path, "stat", told)
    with pytest.raises(WorkerLost, match="belongs to another user"):
        private_directory()


def test_a_directory_that_cannot_be_made_is_said(runtime: Path) -> None:
    runtime.write_text("a file")
    with pytest.raises(WorkerLost, match="cannot be made; set FROSTLINE_RUNTIME_DIR"):
        private_directory()


def test_a_name_too_long_for_a_socket_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROSTLINE_RUNTIME_DIR", str(tmp_path / ("x" * 100)))
    with pytest.raises(WorkerLost, match="too long for a socket"):
        private_directory()


def test_without_a_wish_it_is_the_users_runtime_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FROSTLINE_RUNTIME_DIR")
    made = [tmp_path / "in the way" / "frostline", tmp_path / "c" / "run"]
    (tmp_path / "in the way").write_text("a file")
    monkeypatch.setattr(addresses.platformdirs, "user_runtime_path", lambda _: made[0])
    monkeypatch.setattr(addresses.platformdirs, "user_cache_dir", lambda _: str(made[1].parent))
    # The first that can be made is taken.
    assert private_directory() == made[1]
    (tmp_path / "in the way").unlink()
    assert private_directory() == made[0]
    assert mode(made[0]) == mode(made[1]) == 0o700


def test_one_address_for_each_model_device_and_thread_count(runtime: Path) -> None:
    settings = Settings()
    one = address_for(settings)
    assert one == address_for(replace(settings, steps=9, order="margin", idle_s=1.0))
    others = [
        replace(settings, model="/m"),
        replace(settings, device="cpu"),
        replace(settings, threads=2),
    ]
    assert len({one, *map(address_for, others)}) == 4
    assert {one.path.suffix, one.log.suffix, one.lock.suffix} == {".sock", ".log", ".lock"}


def test_two_versions_do_not_meet(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = address_for(Settings())
    monkeypatch.setattr(addresses, "__version__", "0.0.0")
    assert address_for(Settings()) != ours


def test_on_windows_it_is_a_port_and_a_token(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses.sys, "platform", "win32")
    address = address_for(Settings())
    assert address.tcp
    assert address.path.suffix == ".json"


def test_the_token_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    write_private(path, json.dumps({"port": 7, "token": "secret"}))
    assert mode(path) == 0o600
    assert read_port(path) == (7, "secret")
    write_private(path, json.dumps({"port": 8, "token": "t"}))
    assert read_port(path) == (8, "t")


@pytest.mark.parametrize("content", [None, "", "{", "[]", "7", '{"port": "x", "token": 1}', "{}"])
def test_no_port_yet_is_no_worker(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "w.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(WorkerLost, match="no worker has announced itself"):
        read_port(path)


def test_an_address_knows_its_files() -> None:
    assert Address(Path("/r/w.sock")).log == Path("/r/w.log")

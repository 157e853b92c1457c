"""`frostline models` against a hub of our own: what is pulled, what is not, and what is said when it fails."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from frostline import config
from frostline.cli import main
from frostline.models import folder as folders
from frostline.models import registry
from models import published

NAME, COMMIT = "makers/dream", "c0ffee" * 6 + "c0ff"


class Hub:
    """The two endpoints of a model hub that a pull needs, and the ways in which they fail.

    Attributes:
        breaks: file whose first answer ends in the middle; it says nothing of the rest afterwards.
        again: how often it breaks instead, each time in the middle of what is left.
        whole: whether the start that is asked for is passed over.
        asked: the files that were asked for, each with its Range.
        logins: who asked for them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.breaks: str | None = None
        self.again = 0
        self.whole = False
        self.asked: list[tuple[str, str]] = []
        self.logins: set[str | None] = set()
        self.published = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        self.held = dict(self.published)
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0]
        if path.startswith(f"/api/models/{NAME}"):
            revision = path.partition("/revision/")[2]
            if revision not in ("", "main", COMMIT):
                self.send(request, 404, b"{}", {"X-Error-Code": "RevisionNotFound"})
                return
            self.send(request, 200, json.dumps(self.described()).encode())
        elif path.startswith(f"/{NAME}/resolve/{COMMIT}/"):
            self.file(request, path.rpartition("/")[2])
        else:
            self.send(request, 404, b"{}", {"X-Error-Code": "RepoNotFound"})

    def described(self) -> dict[str, Any]:
        siblings = []
        for name, data in self.published.items():
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            one: dict[str, Any] = {"rfilename": name, "size": len(data), "blobId": blob}
            if name.endswith((".safetensors", ".bin")):
                sha = hashlib.sha256(data).hexdigest()
                one["lfs"] = {"sha256": sha, "size": len(data), "pointerSize": 134}
            siblings.append(one)
        card = {"license": "apache-2.0"}
        return {"id": NAME, "modelId": NAME, "sha": COMMIT, "cardData": card, "siblings": siblings}

    def file(self, request: BaseHTTPRequestHandler, name: str) -> None:
        wanted = request.headers.get("Range", "")
        self.asked.append((name, wanted))
        self.logins.add(request.headers.get("Authorization"))
        data = self.held[name]
        start = int(wanted.removeprefix("bytes=").partition("-")[0]) if wanted else 0
        if self.whole:
            start = 0
        headers = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"} if start else {}
        if name != self.breaks:
            self.send(request, 206 if start else 200, data[start:], headers)
        elif start and not self.again:
            self.send(request, 403, b"", {})
        else:
            if self.again:
                self.again -= 1
                self.breaks = name if self.again else None
            left = data[start:]
            half = {**headers, "Content-Length": str(len(left))}
            self.send(request, 206 if start else 200, left[: len(left) // 2], half)
            request.close_connection = True

    def send(
        self,
        request: BaseHTTPRequestHandler,
        status: int,
        data: bytes,
        headers: dict[str, str] | None = None,
    ) -> None:
        request.send_response(status)
        for key, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            request.send_header(key, value)
        request.end_headers()
        request.wfile.write(data)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with a Dream in the published layout, pickles, code and pictures beside it."""
    folder = published.dream(tmp_path / "hub")
    (folder / "modeling_x.py").write_text("raise SystemExit('executed')")
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04")
    (folder / "picture.png").write_bytes(b"png")
    made = Hub(folder)
    monkeypatch.setenv("FROSTLINE_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", made.url)
    monkeypatch.setattr("huggingface_hub.file_download.constants.ENDPOINT", made.url)
    template = made.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False
    )
    monkeypatch.setattr(
        "huggingface_hub.file_download.HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False
    )
    monkeypatch.setattr("frostline.models.hub.WAIT_S", 0)
    yield made
    made.server.shutdown()
    made.server.server_close()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["models", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return status, captured.out, captured.err


def test_a_pull_and_a_setting_are_all_it_takes(
    hub: Hub, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, out, err = said(capsys, "pull", NAME)
    assert status == 0
    folder = tmp_path / "models" / NAME
    # The licence is told before anything is fetched, with the commit that is pinned.
    assert f"{NAME} at {COMMIT[:12]}: licence apache-2.0" in err
    assert f'model = "{NAME}"' in out
    assert {path.name for path in folder.iterdir()} == {
        "added_tokens.json",
        "config.json",
        "merges.txt",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "tokenizer_config.json",
        "vocab.json",
        "frostline-pulled.json",
    }
    assert config.model_path(NAME) == str(folder)
    assert registry.load(NAME, "cpu").spec.shift == 1
    assert said(capsys, "path", NAME)[1].strip() == str(folder)
    # Again: nothing is fetched.
    hub.asked.clear()
    status, out, _ = said(capsys, "pull", NAME)
    assert (status, hub.asked) == (0, [])
    assert "already here" in out


def test_what_was_pulled_is_listed_verified_and_removed(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "pull", NAME, "--yes")
    _, out, _ = said(capsys, "list", "--json")
    one = json.loads(out)["models"][1]
    assert (one["model"], one["licence"], one["sees"]) == (NAME, "apache-2.0", "both sides")
    assert one["bytes"] == sum(
        len(data) for name, data in hub.held.items() if name.endswith(".safetensors")
    )
    assert said(capsys, "verify", NAME)[0] == 0
    weights = config.pulled_folder(NAME) / "model-00001-of-00002.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    (config.pulled_folder(NAME) / "merges.txt").unlink()
    status, out, _ = said(capsys, "verify", NAME)
    assert status == 1
    assert "model-00001-of-00002.safetensors does not have the hash" in out
    assert "merges.txt is missing" in out
    assert said(capsys, "pull", NAME)[0] == 0
    assert said(capsys, "verify", NAME)[0] == 0
    assert said(capsys, "remove", NAME)[0] == 0
    assert not config.pulled_folder(NAME).exists()
    assert said(capsys, "verify", NAME)[2].startswith(f"frostline: {NAME} was not pulled here")
    assert "models pull OWNER/NAME" in said(capsys, "path", NAME)[2]


def test_a_broken_download_goes_on_where_it_broke(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    file = "model-00002-of-00002.safetensors"
    hub.breaks = file
    status, _, err = said(capsys, "pull", NAME)
    assert status == 1
    # One sentence, and none of the library's own.
    assert err.strip().splitlines()[-1].startswith("frostline: http://127.0.0.1")
    # It broke once, and what the hub said then was no matter of the line.
    assert [wanted for name, wanted in hub.asked if name == file] == [
        "",
        f"bytes={len(hub.held[file]) // 2}-",
    ]
    assert not config.pulled_folder(NAME).exists()
    hub.breaks = None
    hub.asked.clear()
    assert said(capsys, "pull", NAME)[0] == 0
    # Nothing of what came is asked for again.
    assert hub.asked == [(file, f"bytes={len(hub.held[file]) // 2}-")]
    assert said(capsys, "verify", NAME)[0] == 0


def test_a_line_that_breaks_now_and_then_is_taken_up_again(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    file = "model-00002-of-00002.safetensors"
    hub.breaks, hub.again = file, 2
    assert said(capsys, "pull", NAME)[0] == 0
    asked = [wanted for name, wanted in hub.asked if name == file]
    assert len(asked) == 3
    assert asked == sorted(asked)
    assert said(capsys, "verify", NAME)[0] == 0


def test_a_login_goes_with_what_is_asked_for(
    hub: Hub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said(capsys, "pull", NAME)[0] == 0
    assert hub.logins == {None}
    assert said(capsys, "remove", NAME)[0] == 0
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.logins.clear()
    assert said(capsys, "pull", NAME)[0] == 0
    assert hub.logins == {"Bearer hf_secret"}


def test_a_hub_that_sends_all_of_a_file_when_asked_for_its_end(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    file = "model-00002-of-00002.safetensors"
    hub.breaks = file
    assert said(capsys, "pull", NAME)[0] == 1
    hub.breaks, hub.whole = None, True
    assert said(capsys, "pull", NAME)[0] == 0
    assert said(capsys, "verify", NAME)[0] == 0


def test_a_file_with_another_hash_is_thrown_away(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    file = "model-00001-of-00002.safetensors"
    hub.held[file] = b"\0" * len(hub.held[file])
    status, _, err = said(capsys, "pull", NAME)
    assert status == 1
    assert f"{file} of {NAME} does not have the hash that its makers published" in err
    assert not config.pulled_folder(NAME).exists()
    hub.held = dict(hub.published)
    assert said(capsys, "pull", NAME)[0] == 0


def test_what_cannot_be_run_is_refused_before_its_weights_are_fetched(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.published["config.json"] = (
        b'{"model_type": "evil", "auto_map": {"AutoModel": "evil.Model"}}'
    )
    hub.held = dict(hub.published)
    status, _, err = said(capsys, "pull", NAME)
    assert status == 1
    assert "models of type 'evil' cannot be run" in err
    assert not any(name.endswith(".safetensors") for name, _ in hub.asked)
    for name in [name for name in hub.published if name.endswith(".safetensors")]:
        del hub.published[name]
    assert "has no safetensors files" in said(capsys, "pull", NAME)[2]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["makers/nothing"], "has no model makers/nothing"),
        ([NAME, "--revision", "v9"], f"{NAME} has no revision v9"),
        (["no name at all"], "is no model's name on the hub"),
        (["../../etc"], "is no model's name on the hub"),
    ],
)
def test_a_model_that_is_not_there(
    hub: Hub, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    status, _, err = said(capsys, "pull", *arguments)
    assert status == 1
    assert sentence in err
    assert err.strip().count("\n") == 0


def test_without_a_network_one_sentence_says_so(
    hub: Hub, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hub.server.shutdown()
    hub.server.server_close()
    status, _, err = said(capsys, "pull", NAME)
    assert status == 1
    assert err.strip().count("\n") == 0
    assert "cannot be reached" in err
    assert "set `model` to a folder that was copied here" in err
    # And such a folder needs no hub.
    assert folders.folder_of(str(tmp_path / "hub")) == tmp_path / "hub"

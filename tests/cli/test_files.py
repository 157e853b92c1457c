"""`fill` and `rewrite` on files as they really are: what is outside the holes stays, byte for byte."""

import json
import stat
from pathlib import Path

import pytest

from frostline.cli import main

pytestmark = pytest.mark.e2e

LINES = [
    "import math",
    "",
    "",
    "def area(radius):",
    "    return math.pi * radius",
    "",
    "",
    "def perimeter(radius):",
    "    return 2 * math.pi * radius",
    "",
]


def page(end: str = "\n") -> str:
    return end.join(LINES)


def mixed() -> str:
    ends = ["\n", "\r\n", "\r"]
    return "".join(line + ends[index % 3] for index, line in enumerate(LINES[:-1]))


# Name, the file, and the line (from 1) whose right half is filled and which is rewritten.
FILES: dict[str, tuple[bytes, int]] = {
    "lf": (page().encode(), 5),
    "crlf": (page("\r\n").encode(), 5),
    "cr": (page("\r").encode(), 5),
    "mixed": (mixed().encode(), 5),
    "no_final_newline": (page().rstrip("\n").encode(), 9),
    "bom": (b"\xef\xbb\xbf" + page().encode(), 5),
    "tabs": (page().replace("    ", "\t").encode(), 5),
    "form_feed": (page().replace("\n\n\n", "\n\f\n\n").encode(), 5),
    "u2028": (page().replace("import math", "import math  # a\u2028b\u0085c").encode(), 5),
    "emoji": (page().replace("import math", 'import math  # 👋🏽 cafe\u0301 "日本"').encode(), 5),
    "long": (("x = 1\n" * 20_000 + page()).encode(), 20_005),
    "empty": (b"", 1),
    "does_not_parse": (("def broken(:\n" + page()).encode(), 6),
    "special_tokens": (
        page().replace("import math", "import math  # <|mask|><|end|><|pad|>").encode(),
        5,
    ),
}


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("threads = 1\n")
    monkeypatch.setenv("FROSTLINE_CONFIG", str(settings))
    return


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    status = main([*arguments, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert set(result) == {"holes", "committed", "refusal", "metrics"}
    assert status == (0 if result["refusal"] is None else 1)
    return result


def holes_bytes(data: bytes, result: dict) -> bytes:
    """Return what the file has to be: the old bytes with each hole's old text made the new one."""
    text = data.decode()
    for hole in reversed(result["holes"]):
        start, end = (offset(text, hole["range"][name]) for name in ("start", "end"))
        assert text[start:end] == hole["old"]
        text = text[:start] + hole["new"] + text[end:]
    return text.encode()


def offset(text: str, place: dict) -> int:
    """Return the offset of a zero-based place in code points; lines end at LF, CRLF and CR."""
    at = 0
    for _ in range(place["line"]):
        ends = [text.find(end, at) for end in "\r\n" if text.find(end, at) >= 0]
        at = min(ends) + (2 if text[min(ends) : min(ends) + 2] == "\r\n" else 1)
    return at + place["character"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["fill", "rewrite"])
@pytest.mark.complaint(7)
def test_only_the_hole_changes(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, line = FILES[name]
    path = tmp_path / "file.py"
    path.write_bytes(data)
    place = f"{path}:{line}"
    options = ["--length", "6"]
    if command == "fill" and data:
        place += ":12"
    if command == "rewrite":
        options = ["--strength", "0.5"]
    written = run(capsys, command, place, *options, "--write")
    if written["refusal"] is None:
        assert written["committed"] is True
        assert path.read_bytes() == holes_bytes(data, written)
        assert path.stat().st_mode == (tmp_path / "settings.toml").stat().st_mode
    else:
        # What a small model writes does not always parse, and then nothing may happen.
        assert written["refusal"]["code"] in ("unsound", "empty")
        assert path.read_bytes() == data


def test_without_write_the_file_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(page().encode())
    shown = run(capsys, "rewrite", f"{path}:5", "--strength", "0.5")
    assert path.read_bytes() == page().encode()
    assert shown["committed"] is False
    written = run(capsys, "rewrite", f"{path}:5", "--strength", "0.5", "--write")
    assert written["holes"] == shown["holes"], "the same seed gives the same draft"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fill", "{dir}/missing.py:1"], "cannot be read"),
        (["fill", "{dir}:1"], "is a folder"),
        (["fill", "{file}:99"], "has no line 99; it has 10"),
        (["fill", "{file}:1:99"], "has no column 99"),
        (["fill", "{file}:0"], "has no line 0"),
        (["fill", "{file}"], "say where"),
        (["fill", "{file}", "--range", "5-1"], "LINE:COL-LINE:COL"),
        (["fill", "{file}", "--range", "5:3-5:1"], "ends before it starts"),
        (["rewrite", "{file}"], "say which lines"),
        (["rewrite", "{file}:5-2"], "end before they start"),
        (["rewrite", "{file}:5-50"], "has no line 50"),
        (["rewrite", "{file}:5", "--strength", "1.5"], "between 0 and 1"),
        (["fill", "{dir}/binary:1"], "is a binary file"),
        (["fill", "{dir}/latin.py:1"], "is not UTF-8"),
        (["fill", "{dir}/large.py:1"], "max_file_bytes"),
    ],
)
def test_wrong_use_is_one_sentence_and_status_2(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file.py").write_text(page())
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "latin.py").write_bytes("café".encode("latin-1"))
    (tmp_path / "large.py").write_bytes(b"x" * 5_000_000)
    places = {"dir": tmp_path, "file": tmp_path / "file.py"}
    assert main([one.format(**places) for one in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


def test_links_and_modes_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_bytes(page().encode())
    real.chmod(0o640)
    link.symlink_to(real)
    for seed in range(12):
        written = run(
            capsys, "fill", f"{link}:5:12", "--length", "3", "--seed", str(seed), "--write"
        )
        if written["committed"]:
            break
    assert written["committed"]
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.read_bytes() == holes_bytes(page().encode(), written)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "link.py",
        "real.py",
        "settings.toml",
    ]


def test_without_json_a_diff_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(page("\r\n").encode())
    for seed in range(12):
        if main(["fill", f"{path}:5:12", "--length", "3", "--seed", str(seed)]) == 0:
            break
    out = capsys.readouterr().out
    assert "-    return math.pi * radius\n" in out
    assert "@@" in out
    assert "\r" not in out


def test_modules_in_the_users_folder_are_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("msgspec", "pygls", "torch", "lsprotocol"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a repository ran its own code')\n")
    path = tmp_path / "file.py"
    path.write_bytes(page().encode())
    monkeypatch.chdir(tmp_path)
    result = run(capsys, "fill", f"{path}:5:12", "--length", "3")
    assert result["holes"] or result["refusal"]["code"] in ("unsound", "empty")

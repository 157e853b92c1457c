"""A fill-in-the-middle model from one GGUF file: listed, looked over by doctor, and asked by `fill`."""

import json
from pathlib import Path

import pytest

from frostline.cli import main
from models import fill_in, gguf_files


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gguf")
    folder = fill_in.qwen_coder(root / "folder")
    (root / "here").mkdir()
    return gguf_files.convert(folder, root / "here" / "tiny-coder-q8_0.gguf", kind=gguf_files.Q8_0)


@pytest.mark.e2e
def test_doctor_knows_a_gguf_file_and_says_what_it_cannot_do(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--json", "--threads", "1", "--model", str(model)]) == 0
    checks = {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["model"]["found"].startswith("tiny-coder-q8_0 on cpu, first draft after")
    said = checks["cannot"]["found"]
    assert "tiny-coder-q8_0 does not follow instructions." in said
    assert "only a quotation of it" in said
    assert "one after another, not jointly" in said


def test_it_is_listed_with_its_size_and_what_it_sees(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "list", "--json", str(model), str(model.parent)]) == 0
    found = json.loads(capsys.readouterr().out)["models"][1:]
    assert [one["name"] for one in found] == ["tiny-coder-q8_0"] * 2
    for one in found:
        assert one["usable"]
        assert one["bytes"] == model.stat().st_size
        assert one["sees"] == "what is before, and what is behind as a quotation"


@pytest.mark.e2e
def test_a_hole_of_a_file_is_filled_and_nothing_else(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shop.py"
    before, after = "total = 0\r\nfor one in (1, 2):\r\n    total += ", "\r\nprint(total)  # é\r\n"
    path.write_bytes((before + after).encode())
    place = f"{path}:3:14"
    assert main(["fill", place, "--json", "--write", "--threads", "1", "--model", str(model)]) in (
        0,
        1,
    )
    told = json.loads(capsys.readouterr().out)
    written = path.read_bytes().decode()
    assert written.startswith(before)
    assert written.endswith(after)
    assert (len(written) > len(before + after)) == (not told.get("refusal")), told


@pytest.mark.e2e
def test_a_torn_file_is_a_sentence(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torn = tmp_path / "torn.gguf"
    torn.write_bytes(model.read_bytes()[:-1000])
    assert main(["doctor", "--json", "--model", str(torn)]) == 1
    checks = {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}
    assert not checks["model"]["ok"]
    assert "torn.gguf is cut short" in checks["model"]["found"]

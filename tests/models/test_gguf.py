"""GGUF files: the numbers and the tokenizer are those of the folder they were made from, or a sentence says why not."""

import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from frostline.errors import ModelUnusable
from frostline.models import folder as folders
from frostline.models import gguf_blocks, registry
from frostline.models.causal import CausalBackend
from frostline.wire import messages as wire
from frostline.worker.engine import Engine
from frostline.worker.vocabulary import Vocabulary
from models import fill_in, gguf_files

BLOCKS = Path(__file__).parents[2] / "fixtures" / "golden" / "gguf_blocks.json"
# Tokenizers of pieces are not read from GGUF, so CodeGemma is not among them.
KINDS = ("qwen2.5-coder", "starcoder2", "deepseek-coder")


def loaded(path: Path) -> CausalBackend:
    backend = registry.load(str(path), "cpu")
    assert isinstance(backend, CausalBackend)
    return backend


def refusal(path: Path) -> str:
    """Return the sentence with which a file is refused."""
    with pytest.raises(ModelUnusable) as refused:
        registry.load(str(path), "cpu")
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert len(sentence) < 600
    return sentence


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders of each layout, made when first asked for; not to be changed."""
    made: dict[str, Path] = {}
    root = tmp_path_factory.mktemp("fill-in")

    def of(kind: str) -> Path:
        if kind not in made:
            made[kind] = fill_in.KINDS[kind].make(root / kind)
        return made[kind]

    return of


@pytest.fixture
def folder(checkpoints: Callable[[str], Path]) -> Path:
    return checkpoints("qwen2.5-coder")


@pytest.mark.parametrize("kind", json.loads(BLOCKS.read_text()))
def test_blocks_are_read_as_ggml_reads_them(kind: str) -> None:
    """Random bytes, and the floats that the package `gguf` 0.19 makes of them."""
    held = json.loads(BLOCKS.read_text())[kind]
    raw = torch.frombuffer(bytearray(base64.b64decode(held["raw"])), dtype=torch.uint8)
    theirs = torch.frombuffer(bytearray(base64.b64decode(held["floats"])), dtype=torch.float32)
    assert theirs.unique().numel() > 8
    torch.testing.assert_close(gguf_blocks.floats(raw, kind), theirs, rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_computes_what_its_folder_does(
    kind: str, checkpoints: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = checkpoints(kind)
    one, other = loaded(folder), loaded(gguf_files.convert(folder, tmp_path / "tiny.gguf"))
    assert one.fim == other.fim
    assert one.spec.max_context == other.spec.max_context
    assert Vocabulary(one).spelling == Vocabulary(other).spelling
    assert torch.equal(Vocabulary(one).banned, Vocabulary(other).banned)
    text = "def f(x):\n    return x1 + 22\r\n\té\n"
    assert other.tokens.spell(other.tokens.encode(text)) == text.encode()
    ids, slots = torch.tensor(one.tokens.encode(text)), torch.tensor([4, 5, 6, 7])
    window = Window(ids, slots)
    theirs = one.open(window).predict(ids[slots])
    ours = other.open(window).predict(ids[slots])
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)


class Window:
    def __init__(self, ids: torch.Tensor, slots: torch.Tensor) -> None:
        self.ids, self.slots = ids, slots


@pytest.mark.parametrize("kind", [gguf_files.F16, gguf_files.Q8_0])
def test_fewer_bits_compute_nearly_the_same(kind: int, folder: Path, tmp_path: Path) -> None:
    one, other = loaded(folder), loaded(gguf_files.convert(folder, tmp_path / "a.gguf", kind=kind))
    ids, slots = torch.tensor(one.tokens.encode("return return x")), torch.tensor([1, 2])
    theirs = one.open(Window(ids, slots)).predict(ids[slots])
    ours = other.open(Window(ids, slots)).predict(ids[slots])
    off = float((ours - theirs).abs().max())
    assert 0 < off < 0.05 * float(theirs.std()) * (1 if kind == gguf_files.F16 else 20)


def test_a_hole_is_filled_from_a_file_and_from_the_folder_it_lies_in(
    folder: Path, tmp_path: Path
) -> None:
    path = gguf_files.convert(folder, tmp_path / "tiny-q8_0.gguf", kind=gguf_files.Q8_0)
    segments = (wire.Text("x = "), wire.Gap(0, room=6, multiline=False), wire.Text("\ny = x\n"))
    ends = []
    for place in (path, tmp_path):
        *steps, done = Engine(loaded(place)).alone(wire.Infill("run", segments))
        assert len(steps) > 1
        ends.append(done.gaps)
    assert ends[0] == ends[1]
    assert folders.read(path).name == "tiny-q8_0"


def test_a_file_without_tokens_for_filling_in(folder: Path, tmp_path: Path) -> None:
    held = json.loads((folder / "tokenizer.json").read_text())
    texts = [one["content"] for one in held["added_tokens"]]
    path = gguf_files.convert(folder, tmp_path / "chat.gguf")
    path.write_bytes(path.read_bytes().replace(b"<|fim_middle|>", b"<|fan_middle|>"))
    assert "<|fim_middle|>" in texts
    assert "has no fill-in-the-middle tokens" in refusal(path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"general__architecture": "mamba"}, "GGUF models of type 'mamba' cannot be run"),
        ({"general__architecture": None}, "does not say its general.architecture"),
        ({"qwen2__block_count": None}, "does not say its qwen2.block_count"),
        ({"qwen2__block_count": 3}, "do not fit what it says of itself"),
        ({"qwen2__rope__scaling__type": "yarn"}, "scales its positions in a way (yarn)"),
        ({"tokenizer__ggml__model": "llama"}, "Use the model's safetensors folder instead"),
        ({"tokenizer__ggml__pre": "unheard-of"}, "(gpt2 unheard-of) that cannot be read"),
        ({"tokenizer__ggml__token_type": [1, 1]}, "its tokenizer does not fit together"),
        ({"tokenizer__ggml__merges": None}, "does not say its tokenizer.ggml.merges"),
    ],
    ids=str,
)
def test_what_a_file_says_and_cannot_be_run(
    changes: dict[str, Any], said: str, folder: Path, tmp_path: Path
) -> None:
    assert said in refusal(gguf_files.convert(folder, tmp_path / "odd.gguf", **changes))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    for content, said in (
        (b"", "cannot be read"),
        (b"GGUF", "damaged or cut short"),
        (b"PK\x03\x04 and so on", "is no GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "is GGUF version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), "damaged or cut short"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62) + b"x" * 64, "damaged or cut short"),
    ):
        path.write_bytes(content)
        assert said in refusal(path)


def test_a_file_that_was_cut_at_any_place_is_refused(folder: Path, tmp_path: Path) -> None:
    whole = gguf_files.convert(folder, tmp_path / "whole.gguf").read_bytes()
    path = tmp_path / "cut.gguf"
    for share in range(1, 20):
        path.write_bytes(whole[: len(whole) * share // 20])
        assert "cut short" in refusal(path)


def test_a_tensor_of_a_kind_or_a_name_that_is_not_known(folder: Path, tmp_path: Path) -> None:
    path = gguf_files.convert(folder, tmp_path / "a.gguf")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"blk.1.attn_q.weight", b"blk.1.attn_z.weight"))
    assert "'blk.1.attn_z.weight' is not known" in refusal(path)
    name = b"blk.1.attn_q.weight"
    kind = whole.index(name) + len(name) + 4 + 2 * 8
    path.write_bytes(whole[:kind] + struct.pack("<I", 16) + whole[kind + 4 :])
    assert "of a kind (16) that cannot be read; these can: BF16, F16" in refusal(path)

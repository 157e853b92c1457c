"""What is wrong with a model folder is said in one sentence, and nothing in it is executed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from frostline.errors import ModelUnusable
from frostline.models import fit, registry, weights
from frostline.models import folder as folders
from models import published, tiny


def refusal(folder: Path) -> str:
    """Return the sentence with which a folder is refused."""
    with pytest.raises(ModelUnusable) as refused:
        registry.load(str(folder), "cpu")
    sentence = str(refused.value)
    assert refused.value.code == "model"
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    assert len(sentence) < 600
    return sentence


def changed(folder: Path, file: str, **values: object) -> None:
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def reweighed(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny model to be broken."""
    return tiny.make(tmp_path / "model")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    sentence = refusal(tmp_path / "nowhere")
    assert "there is no model" in sentence
    assert "nowhere" in sentence
    assert "'embedded'" in sentence


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("weights")
    assert "there is no model" in refusal(tmp_path / "model")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "frostline.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"has no {name}" in refusal(folder)


def test_a_tokenizer_whose_rules_are_code_is_refused(tmp_path: Path) -> None:
    folder = published.dream(tmp_path / "dream")
    published.changed(folder, "tokenizer_config.json", tokenizer_class="EvilTokenizer")
    (folder / "tokenization_evil.py").write_text("raise SystemExit('executed')")
    assert "how a EvilTokenizer cuts text stands in code only" in refusal(folder)
    (folder / "merges.txt").unlink()
    assert "has no tokenizer.json" in refusal(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "frostline.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b"\xff\xfe", b'{"a": 1}'])
def test_a_file_that_holds_something_else(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    sentence = refusal(folder)
    assert name in sentence or "models of type None" in sentence


class Mark:
    """Unpickled, it leaves a file."""

    def __init__(self, left: Path) -> None:
        self.left = left

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.left), "w")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.safetensors"])
def test_a_pickle_is_not_opened(folder: Path, tmp_path: Path, name: str) -> None:
    left = tmp_path / "mark"
    (folder / "model.safetensors").unlink()
    torch.save({"model.norm.weight": Mark(left)}, folder / name)
    sentence = refusal(folder)
    if name.endswith("safetensors"):
        assert "model.safetensors is damaged" in sentence
    else:
        assert "has no safetensors files; weights of other kinds are not opened" in sentence
    assert not left.exists()
    # The mark is no dud.
    (folder / name).rename(tmp_path / "pickle")
    torch.load(tmp_path / "pickle", weights_only=False)["model.norm.weight"].close()
    assert left.exists()


def test_a_missing_file_of_several_is_named(tmp_path: Path) -> None:
    folder = published.dream(tmp_path / "dream")
    (folder / "model-00002-of-00002.safetensors").unlink()
    sentence = refusal(folder)
    assert "lacks model-00002-of-00002.safetensors (1 of 2 weight files are missing)" in sentence
    (folder / "model.safetensors.index.json").write_text("[]")
    assert "model.safetensors.index.json is damaged" in refusal(folder)


def test_an_index_does_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    folder = published.dream(tmp_path / "dream")
    outside = tmp_path / "outside.safetensors"
    (folder / "model-00002-of-00002.safetensors").rename(outside)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    where = {
        name: "../outside.safetensors" if "00002" in file else file
        for name, file in index["weight_map"].items()
    }
    changed(folder, "model.safetensors.index.json", weight_map=where)
    assert "lacks outside.safetensors" in refusal(folder)


def test_an_expert_too_few(tmp_path: Path) -> None:
    folder = published.llada_moe(tmp_path / "moe")
    reweighed(folder, lambda tensors: tensors.pop("model.layers.1.mlp.experts.2.up_proj.weight"))
    assert "an expert of model.layers.1.mlp.experts is missing" in refusal(folder)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("llada", {"alibi": True}),
        ("llada", {"block_group_size": 2}),
        ("llada", {"d_model": None}),
        ("llada-moe", {"shared_expert_intermediate_size": 16}),
        ("llada-moe", {"moe_router_enable_expert_bias": True}),
        ("llada-moe", {"moe_layer_freq": [1]}),
        ("dream", {"use_sliding_window": True}),
    ],
    ids=str,
)
def test_a_variant_that_would_be_computed_wrongly(
    tmp_path: Path, kind: str, values: dict[str, object]
) -> None:
    folder = published.FULL[kind](tmp_path / kind)
    published.changed(folder, "config.json", **values)
    sentence = refusal(folder)
    assert any(
        part in sentence for part in ("only", "does not say of each layer", "no model that can")
    )


@pytest.mark.parametrize("device", ["cpu"])
def test_a_model_that_does_not_fit_is_refused_before_it_is_loaded(
    folder: Path, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "free", lambda _: 40_000.0)
    monkeypatch.setattr(registry.weights, "load", lambda *_: pytest.fail("it was loaded"))
    sentence = refusal(folder)
    assert "0.0 billion numbers" in sentence
    assert "are free on cpu" in sentence
    assert "would fit" in sentence


def test_where_float32_does_not_fit_bfloat16_may(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = weights.numbers_in(folder)
    assert numbers == sum(one.numel() for one in load_file(folder / "model.safetensors").values())
    monkeypatch.setattr(fit, "free", lambda _: 3.0 * numbers)
    model = registry.load(str(folder), "cpu").model
    assert {one.dtype for one in model.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize("kept", [0, 4, 100, 5000, -1])
def test_torn_weights(folder: Path, kept: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    sentence = refusal(folder)
    assert "model.safetensors is damaged" in sentence
    assert "fetch it again" in sentence


def test_a_missing_tensor(folder: Path) -> None:
    reweighed(folder, lambda tensors: tensors.pop("model.layers.1.mlp.up_proj.weight"))
    sentence = refusal(folder)
    assert "do not fit its config.json" in sentence
    assert "model.layers.1.mlp.up_proj.weight" in sentence


def test_missing_embeddings(folder: Path) -> None:
    reweighed(folder, lambda tensors: tensors.pop("model.embed_tokens.weight"))
    assert "model.embed_tokens.weight" in refusal(folder)


def test_an_untied_model_without_its_head(folder: Path) -> None:
    changed(folder, "config.json", tie_word_embeddings=False)
    assert "lm_head.weight" in refusal(folder)


def test_a_tensor_of_another_shape(folder: Path) -> None:
    reweighed(folder, lambda tensors: tensors.update({"model.norm.weight": torch.ones(31)}))
    sentence = refusal(folder)
    assert "model.norm.weight" in sentence
    assert "31" in sentence


def test_a_tensor_too_many(folder: Path) -> None:
    reweighed(folder, lambda tensors: tensors.update({"model.adapter.weight": torch.ones(3)}))
    assert "model.adapter.weight" in refusal(folder)


def test_stored_rotary_tables_are_no_tensor_too_many(folder: Path) -> None:
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    reweighed(folder, lambda tensors: tensors.update({name: torch.zeros(4)}))
    assert registry.load(str(folder), "cpu").spec.name == "tiny"


def test_weights_in_several_files(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    save_file({name: tensors[name] for name in names[:5]}, folder / "model-1-of-2.safetensors")
    assert "do not fit" in refusal(folder)
    save_file({name: tensors[name] for name in names[5:]}, folder / "model-2-of-2.safetensors")
    shares: list[float] = []
    registry.load(str(folder), "cpu", shares.append)
    assert shares == sorted(shares)
    assert shares[-1] <= 1


def test_a_head_beside_tied_embeddings_is_used(folder: Path) -> None:
    other = torch.full((320, 32), 0.5)
    reweighed(folder, lambda tensors: tensors.update({"lm_head.weight": other}))
    assert torch.equal(registry.load(str(folder), "cpu").model.lm_head.weight, other)


@pytest.mark.parametrize("kind", ["bert", "dream", "", None, 7])
def test_an_unknown_architecture_is_not_fetched(folder: Path, kind: object) -> None:
    changed(folder, "config.json", model_type=kind)
    sentence = refusal(folder)
    assert f"models of type {kind!r} cannot be run" in sentence
    assert "auto_map" not in sentence
    changed(folder, "config.json", auto_map={"AutoModel": "evil.Model"})
    (folder / "evil.py").write_text("raise SystemExit('executed')")
    sentence = refusal(folder)
    assert f"models of type {kind!r} cannot be run; its auto_map names code" in sentence
    assert "such code is never run" in sentence
    assert "Dream, a2d-llama, a2d-qwen2" in sentence


def test_remote_code_is_not_executed_for_a_known_one_either(folder: Path) -> None:
    changed(folder, "config.json", auto_map={"AutoModelForCausalLM": "evil.Model"})
    (folder / "evil.py").write_text("raise SystemExit('executed')")
    model = registry.load(str(folder), "cpu").model
    assert type(model).__module__ == "transformers.models.qwen3.modeling_qwen3"


@pytest.mark.parametrize(
    "values",
    [
        {"hidden_size": "wide"},
        {"hidden_size": -1},
        {"num_hidden_layers": None},
        {"vocab_size": 0},
        {"num_attention_heads": 0, "head_dim": None},
        {"hidden_act": "no-such-function"},
        {"rope_parameters": {"rope_type": "no-such-kind", "rope_theta": 1.0}},
    ],
    ids=str,
)
def test_a_configuration_that_makes_no_sense(folder: Path, values: dict[str, object]) -> None:
    changed(folder, "config.json", **values)
    refusal(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"noise": {"kind": "mask", "id": 320}},
        {"noise": {"kind": "mask"}},
        {"length": {"kind": "end_pad", "id": 9999}},
        {"banned": [1, 320]},
        {"banned": [-1]},
        {"begin_of_file": 320},
    ],
    ids=str,
)
def test_special_tokens_outside_the_vocabulary(folder: Path, changes: dict[str, object]) -> None:
    changed(folder, "frostline.json", **changes)
    assert refusal(folder) == "tiny names a special token outside its vocabulary"


def test_special_tokens_that_a_text_may_hold(folder: Path) -> None:
    changed(folder, "frostline.json", length={"kind": "end_pad", "id": 40})
    assert "in a text as a special token" in refusal(folder)


def test_more_entries_in_the_tokenizer_than_in_the_weights(tmp_path: Path) -> None:
    folder = tiny.make(tmp_path, config={"vocab_size": 200})
    assert "more entries than its weights" in refusal(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"noise": {"kind": "uniform"}},
        {"attention": "block"},
    ],
    ids=str,
)
def test_a_way_of_denoising_that_is_not_supported(folder: Path, changes: dict[str, object]) -> None:
    changed(folder, "frostline.json", **changes)
    assert "in a way that is not supported yet" in refusal(folder)


@pytest.mark.parametrize(
    "changes",
    [{"shift": 2}, {"attention": "both"}, {"max_context": 8}, {"name": 7}, {"noise": None}],
    ids=str,
)
def test_a_spec_that_makes_no_sense(folder: Path, changes: dict[str, object]) -> None:
    changed(folder, "frostline.json", **changes)
    assert "does not describe a model" in refusal(folder)


def test_a_spec_may_say_more_than_is_known(folder: Path) -> None:
    changed(folder, "frostline.json", left_to_right={"begin": 3}, colour="blue")
    spec = folders.read(folder)
    assert (spec.pad, spec.max_context, spec.begin_of_file) == (tiny.PAD, 128, tiny.BEGIN)
    changed(folder, "frostline.json", length={"kind": "fixed"})
    assert folders.read(folder).pad is None


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelUnusable, match="no cuda device"):
        registry.device_of("cuda")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert registry.device_of("auto") == torch.device("cpu")

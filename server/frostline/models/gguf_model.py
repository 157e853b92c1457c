"""What a GGUF file says of a model: its config, its tokenizer and its weights, as transformers has them."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from frostline.errors import ModelUnusable
from frostline.models import quantised
from frostline.models.gguf import Entry, Gguf
from frostline.models.weights import fitted

Progress = Callable[[float], None]

# Kinds of entries in a tokenizer's list.
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4
_GPT2_SPLIT = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
_BYTES = {**_GPT2_SPLIT, "use_regex": False}
_DIGITS = {"type": "Digits", "individual_digits": True}
_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _split(*patterns: str) -> list[dict[str, Any]]:
    return [
        {"type": "Split", "pattern": {"Regex": one}, "behavior": "Isolated", "invert": False}
        for one in patterns
    ]


# Name of a pre-tokenizer in a file -> what splits a text before its pieces are looked up, as the
# makers' own tokenizer.json files have it.
_SPLITS: dict[str, list[dict[str, Any]]] = {
    "qwen2": [*_split(_QWEN2), _BYTES],
    "starcoder": [_DIGITS, _GPT2_SPLIT | {"use_regex": True}],
    "deepseek-coder": [
        *_split("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+"),
        _DIGITS,
        _BYTES,
    ],
}
_LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_STARCODER2 = {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}
# Architecture -> transformers' own class.
_CLASSES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "starcoder2": "Starcoder2ForCausalLM",
}


def config(file: Gguf) -> dict[str, Any]:
    """Return what config.json would say of the model in `file`.

    Raises:
        ModelUnusable: it is of an architecture that is not known, or does not say its sizes.
    """
    kind = file.wanted("general.architecture", str)
    if kind not in _CLASSES:
        known = ", ".join(_CLASSES)
        raise ModelUnusable(f"GGUF models of type {kind!r} cannot be run; these can: {known}")

    def said(key: str) -> int:
        return int(file.wanted(f"{kind}.{key}", int))

    heads, hidden = said("attention.head_count"), said("embedding_length")
    norm = "layer_norm_epsilon" if kind == "starcoder2" else "layer_norm_rms_epsilon"
    epsilon = float(file.wanted(f"{kind}.attention.{norm}", float))
    values = {
        "model_type": kind,
        "vocab_size": file.tensors["token_embd.weight"].shape[0]
        if "token_embd.weight" in file.tensors
        else len(file.wanted("tokenizer.ggml.tokens", list)),
        "hidden_size": hidden,
        "num_hidden_layers": said("block_count"),
        "intermediate_size": said("feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": int(file.meta.get(f"{kind}.attention.head_count_kv", heads)),
        "head_dim": int(file.meta.get(f"{kind}.attention.key_length", hidden // max(heads, 1))),
        "max_position_embeddings": said("context_length"),
        "norm_epsilon" if kind == "starcoder2" else "rms_norm_eps": epsilon,
        "rope_parameters": _rope(file, kind),
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }
    if kind == "starcoder2":
        values["use_bias"] = "blk.0.attn_q.bias" in file.tensors
    return values


def _rope(file: Gguf, kind: str) -> dict[str, Any]:
    theta = float(file.meta.get(f"{kind}.rope.freq_base", 10000.0))
    scaling = file.meta.get(f"{kind}.rope.scaling.type", "none")
    if scaling == "none":
        return {"rope_type": "default", "rope_theta": theta}
    if scaling == "linear":
        factor = float(file.meta.get(f"{kind}.rope.scaling.factor", 1.0))
        return {"rope_type": "linear", "rope_theta": theta, "factor": factor}
    raise ModelUnusable(
        f"{file.path} scales its positions in a way ({scaling}) that is not known; it cannot be run"
    )


def tokenizer(file: Gguf) -> dict[str, Any]:
    """Return what tokenizer.json would say of the tokenizer in `file`.

    Raises:
        ModelUnusable: it is not byte-level BPE, or splits text in a way that is not known.
    """
    kind = file.wanted("tokenizer.ggml.model", str)
    splits = file.meta.get("tokenizer.ggml.pre", "")
    if kind != "gpt2" or splits not in _SPLITS:
        known = ", ".join(sorted(_SPLITS))
        raise ModelUnusable(
            f"{file.path} has a tokenizer of a kind ({kind} {splits}) that cannot be read from GGUF; "
            f"these can: {known}. Use the model's safetensors folder instead"
        )
    entries = file.wanted("tokenizer.ggml.tokens", list)
    kinds = file.meta.get("tokenizer.ggml.token_type") or [_NORMAL] * len(entries)
    merges = file.wanted("tokenizer.ggml.merges", list)
    if len(kinds) != len(entries):
        raise ModelUnusable(f"{file.path} is damaged: its tokenizer does not fit together")
    together = list(enumerate(zip(entries, kinds, strict=True)))
    added = [
        {"id": one, "content": text, "special": True}
        for one, (text, kind) in together
        if kind in (_CONTROL, _USER_DEFINED)
    ]
    return {
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _SPLITS[splits]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "model": {
            "type": "BPE",
            "vocab": {text: one for one, (text, kind) in together if kind == _NORMAL},
            "merges": merges,
        },
    }


def weights(
    file: Gguf, dtype: torch.dtype, device: torch.device, progress: Progress
) -> dict[str, Tensor]:
    """Return the tensors of `file` under their names in transformers' classes, as floats on `device`.

    Raises:
        ModelUnusable: the file cannot be read, or holds a tensor that no class has.
    """
    kind = file.wanted("general.architecture", str)
    result, done = {}, 0
    total = max(sum(entry.size for entry in file.tensors.values()), 1)
    for name, entry, raw in _raw(file):
        done += entry.size
        tensor = quantised.floats(raw, entry.kind).view(entry.shape)
        part, layer = _name(name, kind)
        if kind == "llama" and layer in ("attn_q", "attn_k"):
            tensor = _halves_again(tensor, file, layer)
        if part:
            result[part] = tensor.to(device=device, dtype=dtype)
        progress(done / total)
    return result


def _raw(file: Gguf) -> Iterator[tuple[str, Entry, Tensor]]:
    """Yield each tensor's name, place and (bytes,) content, one copy at a time."""
    try:
        with (
            file.path.open("rb") as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            for name, entry in file.tensors.items():
                content = bytearray(data[entry.start : entry.start + entry.size])
                if len(content) != entry.size:
                    raise ModelUnusable(f"{file.path} is cut short at {name}; fetch it again")
                yield name, entry, torch.frombuffer(content, dtype=torch.uint8)
    except OSError as error:
        raise ModelUnusable(f"{file.path} cannot be read ({error})") from error


def _name(name: str, kind: str) -> tuple[str, str]:
    """Return a tensor's name in transformers' classes, and which part of a layer it is.

    Empty for the table of rotary frequencies, which is computed here.
    """
    stem, _, what = name.rpartition(".")
    if stem in _WHOLE:
        return f"{_WHOLE[stem]}.{what}", ""
    if stem == "rope_freqs":
        return "", ""
    block, _, part = stem.removeprefix("blk.").partition(".")
    names = _LAYER | _STARCODER2 if kind == "starcoder2" else _LAYER
    if not stem.startswith("blk.") or not block.isdecimal() or part not in names:
        raise ModelUnusable(f"a tensor {name!r} is not known in models of type {kind!r}")
    return f"model.layers.{block}.{names[part]}.{what}", part


def _halves_again(tensor: Tensor, file: Gguf, part: str) -> Tensor:
    """Return a projection's rows as transformers' rotary embedding wants them: one half, then the other.

    Files of the Llama architecture have the two halves of each head interleaved.
    """
    heads = int(file.wanted("llama.attention.head_count", int))
    if part == "attn_k":
        heads = int(file.meta.get("llama.attention.head_count_kv", heads))
    shape = tensor.shape
    return tensor.reshape(heads, -1, 2, *shape[1:]).transpose(1, 2).reshape(shape)


def special(description: dict[str, Any]) -> dict[str, int]:
    """Return the id of each special token that a tokenizer's description names."""
    return {str(one["content"]): int(one["id"]) for one in description.get("added_tokens", [])}


def ends(file: Gguf) -> list[int]:
    """Return the ids with which the model in `file` ends a text."""
    keys = ("eos_token_id", "eot_token_id")
    found = (file.meta.get(f"tokenizer.ggml.{key}") for key in keys)
    return [one for one in found if isinstance(one, int)]


def begin(file: Gguf) -> list[int]:
    """Return the ids that the tokenizer in `file` puts before every text."""
    first = file.meta.get("tokenizer.ggml.bos_token_id")
    wanted = file.meta.get("tokenizer.ggml.add_bos_token", False)
    return [first] if wanted and isinstance(first, int) else []


def find(name: Path) -> Path | None:
    """Return the GGUF file that `name` is, or the only one in the folder that it is; else None."""
    if name.suffix == ".gguf":
        return name if name.is_file() else None
    files = sorted(name.glob("*.gguf")) if name.is_dir() else []
    return files[0] if len(files) == 1 else None


def module(
    file: Gguf, device: torch.device, dtype: torch.dtype, progress: Progress = lambda _: None
) -> nn.Module:
    """Return the model in `file` on `device`, ready to run, its numbers of `dtype`.

    Raises:
        ModelUnusable: it cannot be built, or its tensors do not fit it.
    """
    values = config(file)
    try:
        built = transformers.AutoConfig.for_model(**values)
        with torch.device("meta"):
            model = getattr(transformers, _CLASSES[values["model_type"]])(built)
    except Exception as error:  # whatever a wrong value makes the library stumble over
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ModelUnusable(
            f"{file.path} describes no model that can be built: {why[:200]}"
        ) from error
    tensors = weights(file, dtype, device, progress)
    return fitted(model, built, tensors, device, file.path)

"""GGUF files by the letter of the format, written from a checkpoint's folder.

Names, order of dimensions and the interleaved halves of Llama's heads are those of llama.cpp's own
conversion, written down here once more, so that a mistake of the reader is none of the writer.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

F32, F16, Q8_0 = 0, 1, 8
_U32, _F32, _BOOL, _STRING, _ARRAY = 4, 6, 7, 8, 9
_I32 = 5
# Special tokens, and all other entries.
_CONTROL, _NORMAL = 3, 1
_PARTS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
SPLITS = {"qwen2": "qwen2", "starcoder2": "starcoder", "llama": "deepseek-coder"}
Values = dict[str, Any]


def convert(folder: Path, path: Path, *, kind: int = F32, **changes: Any) -> Path:
    """Write the checkpoint in `folder` as the GGUF file `path` and return it.

    Args:
        kind: of the matrices; vectors are floats.
        changes: to the file's metadata, dots as "__"; None takes a value out.
    """
    config = json.loads((folder / "config.json").read_text())
    values = _metadata(folder, config)
    for name, value in changes.items():
        values[name.replace("__", ".")] = value
    tensors = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        if config["model_type"] == "llama" and ("q_proj" in name or "k_proj" in name):
            heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
            tensor = _interleaved(tensor, heads)
        # As in real conversions, what is no whole number of blocks has more bits.
        fits = kind if kind != Q8_0 or tensor.shape[-1] % 32 == 0 else F16
        tensors[_renamed(name)] = tensor, fits if tensor.dim() == 2 else F32
    write(path, {name: value for name, value in values.items() if value is not None}, tensors)
    return path


def write(
    path: Path, values: Values, tensors: Mapping[str, tuple[Tensor, int]], version: int = 3
) -> None:
    """Write a file: head, metadata, places of tensors, and at multiples of 32 bytes their content."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    for name, value in values.items():
        head += _string(name) + _typed(value)
    content = b""
    for name, (tensor, kind) in tensors.items():
        head += _string(name) + struct.pack("<I", tensor.dim())
        head += b"".join(struct.pack("<Q", size) for size in reversed(tensor.shape))
        head += struct.pack("<IQ", kind, len(content))
        content += _blocks(tensor, kind)
        content += bytes(-len(content) % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + content)


def _metadata(folder: Path, config: Values) -> Values:
    kind = config["model_type"]
    vocabulary, types, merges = _entries(folder)
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    values: Values = {
        "general.architecture": kind,
        "general.name": "tiny",
        f"{kind}.block_count": config["num_hidden_layers"],
        f"{kind}.context_length": config["max_position_embeddings"],
        f"{kind}.embedding_length": config["hidden_size"],
        f"{kind}.feed_forward_length": config["intermediate_size"],
        f"{kind}.attention.head_count": config["num_attention_heads"],
        f"{kind}.attention.head_count_kv": config["num_key_value_heads"],
        f"{kind}.rope.freq_base": float(config["rope_theta"]),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": SPLITS[kind],
        "tokenizer.ggml.tokens": vocabulary,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.eos_token_id": config["eos_token_id"],
        "tokenizer.ggml.bos_token_id": config["bos_token_id"],
        "tokenizer.ggml.add_bos_token": tokenizer.get("add_bos_token", False),
    }
    if kind == "starcoder2":
        values["starcoder2.attention.layer_norm_epsilon"] = config["norm_epsilon"]
    else:
        values[f"{kind}.attention.layer_norm_rms_epsilon"] = config["rms_norm_eps"]
    if scaling := config.get("rope_scaling"):
        values[f"{kind}.rope.scaling.type"] = scaling["type"]
        values[f"{kind}.rope.scaling.factor"] = float(scaling["factor"])
    return values


def _entries(folder: Path) -> tuple[list[str], list[int], list[str]]:
    held = json.loads((folder / "tokenizer.json").read_text())
    ids = {**held["model"]["vocab"], **{one["content"]: one["id"] for one in held["added_tokens"]}}
    added = {one["content"] for one in held["added_tokens"]}
    texts = sorted(ids, key=lambda text: ids[text])
    return (
        texts,
        [_CONTROL if text in added else _NORMAL for text in texts],
        held["model"]["merges"],
    )


def _renamed(name: str) -> str:
    stem, _, what = name.rpartition(".")
    if stem in _PARTS:
        return f"{_PARTS[stem]}.{what}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{_PARTS[part]}.{what}"


def _interleaved(tensor: Tensor, heads: int) -> Tensor:
    """Return a projection's rows with the two halves of each head taking turns."""
    rows = len(tensor) // heads
    order = [
        head * rows + half * (rows // 2) + place
        for head in range(heads)
        for place in range(rows // 2)
        for half in (0, 1)
    ]
    return tensor[order]


def _blocks(tensor: Tensor, kind: int) -> bytes:
    if kind == F32:
        return tensor.float().numpy().tobytes()
    if kind == F16:
        return tensor.half().numpy().tobytes()
    written = b""
    for block in tensor.float().view(-1, 32):
        scale = (block.abs().max() / 127).half()
        numbers = (block / scale.float().clamp(min=1e-9)).round().clamp(-127, 127).to(torch.int8)
        written += scale.numpy().tobytes() + numbers.numpy().tobytes()
    return written


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(value: Any) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", _BOOL, value)
        case int():
            return struct.pack("<II", _U32, value)
        case float():
            return struct.pack("<If", _F32, value)
        case str():
            return struct.pack("<I", _STRING) + _string(value)
        case list() if value and isinstance(value[0], str):
            texts = b"".join(map(_string, value))
            return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + texts
        case list():
            return struct.pack(f"<IIQ{len(value)}i", _ARRAY, _I32, len(value), *value)
    raise TypeError(value)

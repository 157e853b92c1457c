"""The tensors of a GGUF file in transformers' own classes, as floats."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator

import torch
import transformers
from torch import Tensor, nn

from frostline.errors import ModelUnusable
from frostline.models import gguf_blocks
from frostline.models.gguf import Entry, Gguf
from frostline.models.gguf_said import config
from frostline.models.weights import class_of, fitted

Progress = Callable[[float], None]

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
        tensor = gguf_blocks.floats(raw, entry.kind).view(entry.shape)
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
            model = class_of(values["model_type"])(built)
    except Exception as error:  # whatever a wrong value makes the library stumble over
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ModelUnusable(
            f"{file.path} describes no model that can be built: {why[:200]}"
        ) from error
    tensors = weights(file, dtype, device, progress)
    return fitted(model, built, tensors, device, file.path)

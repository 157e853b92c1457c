"""What a GGUF file says of a model, as config.json and tokenizer.json would say it. Loads no torch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from frostline.errors import ModelUnusable
from frostline.models import fim
from frostline.models.fim import Fim
from frostline.models.gguf import Gguf
from frostline.models.spec import ModelSpec

# What is known of how many tokens a model sees is taken up to here; see `family.context`.
_MOST_CONTEXT = 8192
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
# Architectures that transformers has under the same name.
KINDS = ("llama", "qwen2", "qwen3", "starcoder2")


def config(file: Gguf) -> dict[str, Any]:
    """Return what config.json would say of the model in `file`.

    Raises:
        ModelUnusable: it is of an architecture that is not known, or does not say its sizes.
    """
    kind = file.wanted("general.architecture", str)
    if kind not in KINDS:
        known = ", ".join(KINDS)
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
    merges = file.wanted("tokenizer.ggml.merges", list)
    added = [{"id": one, "content": text, "special": True} for text, one in _special(file).items()]
    return {
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _SPLITS[splits]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "model": {
            "type": "BPE",
            "vocab": {text: one for one, text, kind in _entries(file) if kind == _NORMAL},
            "merges": merges,
        },
    }


def asked(file: Gguf) -> Fim:
    """Return how the model in `file` is asked to fill in.

    Raises:
        ModelUnusable: its tokenizer names no tokens for that.
    """
    return fim.found(_special(file), _ends(file), _begin(file), file.path)


def spec(file: Gguf) -> ModelSpec:
    """Return what the model in `file` can do.

    Raises:
        ModelUnusable: it is of an architecture that is not known, or cannot fill in.
    """
    seen = min(int(config(file)["max_position_embeddings"]), _MOST_CONTEXT)
    return fim.spec(file.path.stem, asked(file), _special(file).values(), seen)


def numbers(file: Gguf) -> int:
    """Return how many numbers its tensors are."""
    return sum(math.prod(entry.shape) for entry in file.tensors.values())


def _special(file: Gguf) -> dict[str, int]:
    """Return the id of each token that is a mark and no text."""
    marks = (_CONTROL, _USER_DEFINED)
    return {text: one for one, text, kind in _entries(file) if kind in marks}


def _entries(file: Gguf) -> Iterator[tuple[int, str, int]]:
    """Yield the entries of its tokenizer: id, text and kind."""
    texts = file.wanted("tokenizer.ggml.tokens", list)
    kinds = file.meta.get("tokenizer.ggml.token_type") or [_NORMAL] * len(texts)
    if len(kinds) != len(texts):
        raise ModelUnusable(f"{file.path} is damaged: its tokenizer does not fit together")
    yield from zip(range(len(texts)), texts, kinds, strict=True)


def _ends(file: Gguf) -> list[int]:
    """Return the ids with which the model in `file` ends a text."""
    keys = ("eos_token_id", "eot_token_id")
    found = (file.meta.get(f"tokenizer.ggml.{key}") for key in keys)
    return [one for one in found if isinstance(one, int)]


def _begin(file: Gguf) -> list[int]:
    """Return the ids that the tokenizer in `file` puts before every text."""
    first = file.meta.get("tokenizer.ggml.bos_token_id")
    wanted = file.meta.get("tokenizer.ggml.add_bos_token", False)
    return [first] if wanted and isinstance(first, int) else []

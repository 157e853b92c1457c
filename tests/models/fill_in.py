"""Fill-in-the-middle checkpoints as their makers publish them, scaled down: four layouts, four sets of marks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from models import published
from models.published import HEAD, HEADS, HIDDEN, INNER, KV_HEADS, LAYERS, VOCABULARY, Shapes, write

CONTEXT = 512
_SIZES = {
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "max_position_embeddings": CONTEXT,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": KV_HEADS,
    "vocab_size": VOCABULARY,
}


@dataclass(frozen=True)
class Kind:
    """One layout.

    Attributes:
        prompt: how its makers have it asked: special tokens, and where the two texts go.
        ends: the special tokens that end what it writes.
    """

    make: Callable[[Path], Path]
    prompt: tuple[str, ...]
    ends: tuple[str, ...]


def qwen_coder(folder: Path) -> Path:
    """Write a Qwen2.5-Coder: tied, with biases, its marks for filling in not called special."""
    marks = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    fim = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>")
    ids = published.fast_tokenizer(
        folder,
        (*marks, *fim, "<|repo_name|>", "<|file_sep|>"),
        tokenizer_class="Qwen2Tokenizer",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
    )
    _no_specials(folder, (*fim, "<|repo_name|>", "<|file_sep|>"))
    write(
        folder / "config.json",
        {
            **_SIZES,
            "architectures": ["Qwen2ForCausalLM"],
            "bos_token_id": ids["<|endoftext|>"],
            "eos_token_id": ids["<|im_end|>"],
            "hidden_act": "silu",
            "max_window_layers": 28,
            "model_type": "qwen2",
            "rms_norm_eps": 1e-06,
            "rope_theta": 1000000.0,
            "sliding_window": 32768,
            "tie_word_embeddings": True,
            "use_sliding_window": False,
        },
    )
    write(
        folder / "generation_config.json",
        {"eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]], "repetition_penalty": 1.1},
    )
    published.save(folder, published.weights(published.qwen_shapes(bias=True, tied=True)))
    return folder


def starcoder2(folder: Path) -> Path:
    """Write a StarCoder2: norms and projections with biases, marks at the bottom of the vocabulary."""
    marks = ("<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>")
    published.fast_tokenizer(
        folder,
        (*marks, "<repo_name>", "<file_sep>"),
        first=True,
        nfc=False,
        tokenizer_class="GPT2Tokenizer",
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
    )
    write(
        folder / "config.json",
        {
            **_SIZES,
            "architectures": ["Starcoder2ForCausalLM"],
            "attention_dropout": 0.0,
            "bos_token_id": 0,
            "embedding_dropout": 0.0,
            "eos_token_id": 0,
            "hidden_act": "gelu_pytorch_tanh",
            "mlp_type": "default",
            "model_type": "starcoder2",
            "norm_epsilon": 1e-05,
            "norm_type": "layer_norm",
            "residual_dropout": 0.0,
            "rope_theta": 999999.4420358813,
            "sliding_window": 4096,
            "use_bias": True,
        },
    )
    published.save(folder, published.weights(_starcoder2_shapes()))
    return folder


def codegemma(folder: Path) -> Path:
    """Write a CodeGemma: Gemma with wide heads, pieces with byte fallback, a mark before every text."""
    marks = ("<pad>", "<eos>", "<bos>", "<unk>")
    fim = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|file_separator|>")
    ids = published.pieces_tokenizer(folder, (*marks, *fim))
    write(
        folder / "tokenizer_config.json",
        {
            "add_bos_token": True,
            "add_eos_token": False,
            "bos_token": "<bos>",
            "eos_token": "<eos>",
            "tokenizer_class": "GemmaTokenizer",
        },
    )
    wide = 2 * HEAD
    vocabulary = 8 * -(-len(ids) // 8)
    write(
        folder / "config.json",
        {
            **_SIZES,
            "architectures": ["GemmaForCausalLM"],
            "attention_bias": False,
            "bos_token_id": ids["<bos>"],
            "eos_token_id": ids["<eos>"],
            "head_dim": wide,
            "hidden_act": "gelu_pytorch_tanh",
            "hidden_activation": "gelu_pytorch_tanh",
            "model_type": "gemma",
            "pad_token_id": ids["<pad>"],
            "rms_norm_eps": 1e-06,
            "rope_theta": 10000.0,
            "vocab_size": vocabulary,
        },
    )
    shapes = published.qwen_shapes(tied=True)
    shapes["model.embed_tokens.weight"] = (vocabulary, HIDDEN)
    for name in list(shapes):
        if "_proj.weight" in name and "self_attn" in name:
            rows, columns = shapes[name]
            into = name.endswith("o_proj.weight")
            shapes[name] = (rows, columns * 2) if into else (rows * 2, columns)
    tensors = published.weights(shapes)
    for name, tensor in tensors.items():
        if name.endswith("norm.weight"):
            # Gemma's norms multiply by one more than what they store.
            tensor -= 1
    published.save(folder, tensors)
    return folder


def deepseek_coder(folder: Path) -> Path:
    """Write a DeepSeek-Coder: Llama with stretched positions, a mark before every text."""
    fim = ("<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>")
    ids = published.fast_tokenizer(
        folder,
        ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", *fim, "<|EOT|>"),
        nfc=False,
        tokenizer_class="LlamaTokenizerFast",
    )
    _no_specials(folder, (*fim, "<|EOT|>"))
    write(
        folder / "tokenizer_config.json",
        {
            "add_bos_token": True,
            "add_eos_token": False,
            "bos_token": {"__type": "AddedToken", "content": "<｜begin▁of▁sentence｜>"},
            "eos_token": {"__type": "AddedToken", "content": "<｜end▁of▁sentence｜>"},
            "tokenizer_class": "LlamaTokenizerFast",
        },
    )
    write(
        folder / "config.json",
        {
            **_SIZES,
            "architectures": ["LlamaForCausalLM"],
            "bos_token_id": ids["<｜begin▁of▁sentence｜>"],
            "eos_token_id": ids["<｜end▁of▁sentence｜>"],
            "hidden_act": "silu",
            "model_type": "llama",
            "pretraining_tp": 1,
            "rms_norm_eps": 1e-06,
            "rope_scaling": {"factor": 4.0, "type": "linear"},
            "rope_theta": 100000,
            "tie_word_embeddings": False,
        },
    )
    published.save(folder, published.weights(published.qwen_shapes()))
    return folder


KINDS: dict[str, Kind] = {
    "qwen2.5-coder": Kind(
        qwen_coder,
        ("<|fim_prefix|>", "before", "<|fim_suffix|>", "behind", "<|fim_middle|>"),
        ("<|im_end|>", "<|endoftext|>", "<|fim_pad|>", "<|file_sep|>", "<|repo_name|>"),
    ),
    "starcoder2": Kind(
        starcoder2,
        ("<fim_prefix>", "before", "<fim_suffix>", "behind", "<fim_middle>"),
        ("<|endoftext|>", "<fim_pad>", "<file_sep>", "<repo_name>"),
    ),
    "codegemma": Kind(
        codegemma,
        ("<bos>", "<|fim_prefix|>", "before", "<|fim_suffix|>", "behind", "<|fim_middle|>"),
        ("<eos>", "<|file_separator|>"),
    ),
    "deepseek-coder": Kind(
        deepseek_coder,
        (
            *("<｜begin▁of▁sentence｜>", "<｜fim▁begin｜>", "before"),
            *("<｜fim▁hole｜>", "behind", "<｜fim▁end｜>"),
        ),
        ("<｜end▁of▁sentence｜>",),
    ),
}


def _no_specials(folder: Path, texts: Iterable[str]) -> None:
    """Have some added tokens not called special, as their makers have it."""
    added = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    plain = set(texts)
    for token in added:
        token["special"] = token["content"] not in plain
    published.changed(folder, "tokenizer.json", added_tokens=added)


def _starcoder2_shapes() -> Shapes:
    shapes: Shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}

    def both(name: str, rows: int, *columns: int) -> None:
        shapes[f"{name}.weight"] = (rows, *columns)
        shapes[f"{name}.bias"] = (rows,)

    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        for part, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            both(f"{at}.self_attn.{part}_proj", heads * HEAD, HIDDEN)
        both(f"{at}.self_attn.o_proj", HIDDEN, HEADS * HEAD)
        both(f"{at}.mlp.c_fc", INNER, HIDDEN)
        both(f"{at}.mlp.c_proj", HIDDEN, INNER)
        both(f"{at}.input_layernorm", HIDDEN)
        both(f"{at}.post_attention_layernorm", HIDDEN)
    both("model.norm", HIDDEN)
    return shapes

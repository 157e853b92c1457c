"""Checkpoints as their makers publish them, scaled down: names, shapes, config keys and tokenizers.

Written from the makers' own files, not from what the loader makes of them, so that the two can differ.
Weights come from a seed, and are wide enough that a model has opinions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import pre_tokenizers
from torch import Tensor

HIDDEN, HEADS, KV_HEADS, INNER, LAYERS = 32, 4, 2, 48, 2
HEAD = HIDDEN // HEADS
VOCABULARY = 320
MERGES = [("r", "e"), ("t", "u"), ("re", "tu"), ("r", "n"), ("retu", "rn"), ("Ġ", "="), ("Ċ", "Ġ")]
AUTO_MAP = {"AutoConfig": "configuration_x.Config", "AutoModel": "modeling_x.Model"}
Shapes = dict[str, tuple[int, ...]]


def vocabulary() -> dict[str, int]:
    """Return the text tokens of a byte-level tokenizer."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    return {text: one for one, text in enumerate([*letters, *(a + b for a, b in MERGES)])}


# --- tokenizers ---------------------------------------------------------------------------------


def merges_tokenizer(folder: Path, kind: str, marks: Iterable[str], **roles: str) -> dict[str, int]:
    """Write vocab.json, merges.txt and tokenizer_config.json alone, as Dream has it."""
    ids = {text: len(vocabulary()) + place for place, text in enumerate(marks)}
    write(folder / "vocab.json", vocabulary())
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in MERGES))
    write(folder / "added_tokens.json", ids)
    decoder = {str(one): {"content": text, "special": True} for text, one in ids.items()}
    write(
        folder / "tokenizer_config.json",
        {"tokenizer_class": kind, "added_tokens_decoder": decoder, **roles},
    )
    return ids


def fast_tokenizer(
    folder: Path, marks: Iterable[str], *, first: bool = False, nfc: bool = True, **roles: str
) -> dict[str, int]:
    """Write tokenizer.json and tokenizer_config.json.

    Args:
        first: the marks have the lowest ids and are part of the vocabulary, as in Seed-Coder.
    """
    texts = vocabulary()
    marks = list(marks)
    if first:
        texts = {text: one + len(marks) for text, one in texts.items()}
        ids = {text: one for one, text in enumerate(marks)}
        texts = {**ids, **texts}
    else:
        ids = {text: len(texts) + place for place, text in enumerate(marks)}
    split = {
        "type": "Split",
        "pattern": {"Regex": r" ?[^\s]+|\s+"},
        "behavior": "Isolated",
        "invert": False,
    }
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    write(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {
                    "id": one,
                    "content": text,
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
                for text, one in ids.items()
            ],
            "normalizer": {"type": "NFC"} if nfc else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
            "post_processor": level,
            "decoder": level,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": "",
                "end_of_word_suffix": "",
                "fuse_unk": False,
                "byte_fallback": False,
                "vocab": texts,
                "merges": [f"{a} {b}" for a, b in MERGES],
            },
        },
    )
    write(folder / "tokenizer_config.json", roles)
    return ids


def pieces_tokenizer(folder: Path, marks: Iterable[str]) -> dict[str, int]:
    """Write tokenizer.json of pieces with byte fallback, as Gemma has it, and return all its entries."""
    letters = [chr(code) for code in range(0x21, 0x7F)]
    pieces = [
        "\u2581",
        "\n",
        "\t",
        *letters,
        "re",
        "tu",
        "retu",
        "rn",
        "return",
        "\u2581=",
        "\u2581\u2581",
    ]
    merges = [
        ("r", "e"),
        ("t", "u"),
        ("re", "tu"),
        ("r", "n"),
        ("retu", "rn"),
        ("\u2581", "="),
        ("\u2581", "\u2581"),
    ]
    entries = [*marks, *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    ids = {text: one for one, text in enumerate(entries)}
    added = [
        {
            "id": ids[text],
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for text in marks
    ]
    write(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
            "pre_tokenizer": None,
            "post_processor": None,
            "decoder": {
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                    {"type": "ByteFallback"},
                    {"type": "Fuse"},
                ],
            },
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": "<unk>",
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": True,
                "byte_fallback": True,
                "vocab": ids,
                "merges": [f"{a} {b}" for a, b in merges],
            },
        },
    )
    return ids


# --- weights ------------------------------------------------------------------------------------


def qwen_shapes(*, bias: bool = False, norms: bool = False, tied: bool = False) -> Shapes:
    """Return names and shapes in the layout of Qwen2, Qwen3 and Llama."""
    shapes: Shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        shapes |= _attention(f"{at}.self_attn", bias=bias, norms=norms)
        shapes |= _mlp(f"{at}.mlp", INNER)
        shapes[f"{at}.input_layernorm.weight"] = (HIDDEN,)
        shapes[f"{at}.post_attention_layernorm.weight"] = (HIDDEN,)
    shapes["model.norm.weight"] = (HIDDEN,)
    if not tied:
        shapes["lm_head.weight"] = (VOCABULARY, HIDDEN)
    return shapes


def _attention(at: str, *, bias: bool, norms: bool) -> Shapes:
    sizes = {"q": HEADS * HEAD, "k": KV_HEADS * HEAD, "v": KV_HEADS * HEAD}
    shapes: Shapes = {f"{at}.{part}_proj.weight": (size, HIDDEN) for part, size in sizes.items()}
    shapes[f"{at}.o_proj.weight"] = (HIDDEN, HEADS * HEAD)
    if bias:
        shapes |= {f"{at}.{part}_proj.bias": (size,) for part, size in sizes.items()}
    if norms:
        shapes |= {f"{at}.{part}_norm.weight": (HEAD,) for part in "qk"}
    return shapes


def _mlp(at: str, inner: int) -> Shapes:
    return {
        f"{at}.gate_proj.weight": (inner, HIDDEN),
        f"{at}.up_proj.weight": (inner, HIDDEN),
        f"{at}.down_proj.weight": (HIDDEN, inner),
    }


def llada_shapes() -> Shapes:
    """Return names and shapes in LLaDA's own layout."""
    at = "model.transformer"
    shapes: Shapes = {
        f"{at}.wte.weight": (VOCABULARY, HIDDEN),
        f"{at}.ln_f.weight": (HIDDEN,),
        f"{at}.ff_out.weight": (VOCABULARY, HIDDEN),
    }
    for layer in range(LAYERS):
        block = f"{at}.blocks.{layer}"
        shapes |= {f"{block}.{part}_proj.weight": (HIDDEN, HIDDEN) for part in "qkv"}
        shapes |= {f"{block}.{part}_proj.weight": (INNER, HIDDEN) for part in ("ff", "up")}
        shapes |= {f"{block}.{part}_norm.weight": (HIDDEN,) for part in ("attn", "ff")}
        shapes[f"{block}.attn_out.weight"] = (HIDDEN, HIDDEN)
        shapes[f"{block}.ff_out.weight"] = (HIDDEN, INNER)
    return shapes


def llada_moe_shapes(experts: int, inner: int) -> Shapes:
    """Return names and shapes in LLaDA-MoE's layout: the first layer dense, the others of experts."""
    shapes = qwen_shapes(norms=True)
    for layer in range(1, LAYERS):
        at = f"model.layers.{layer}.mlp"
        shapes = {name: shape for name, shape in shapes.items() if not name.startswith(at)}
        shapes[f"{at}.gate.weight"] = (experts, HIDDEN)
        for expert in range(experts):
            shapes |= _mlp(f"{at}.experts.{expert}", inner)
    for name, shape in shapes.items():
        # As many heads for keys as for queries.
        if name.endswith(("k_proj.weight", "v_proj.weight")):
            shapes[name] = (HIDDEN, shape[1])
    return shapes


def weights(shapes: Shapes, seed: int = 0) -> dict[str, Tensor]:
    """Return random tensors of these shapes: vectors around 1, matrices around 0."""
    draw = torch.Generator().manual_seed(seed)
    return {
        name: (
            1 + 0.1 * torch.randn(shape, generator=draw)
            if len(shape) == 1 and "bias" not in name
            else 0.3 * torch.randn(shape, generator=draw)
        )
        for name, shape in shapes.items()
    }


def save(folder: Path, tensors: dict[str, Tensor], files: int = 1) -> None:
    """Save tensors in one file, or in several with an index."""
    if files == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names, total = sorted(tensors), sum(one.numel() * 4 for one in tensors.values())
    where = {}
    for number in range(files):
        file = f"model-{number + 1:05}-of-{files:05}.safetensors"
        where |= dict.fromkeys(names[number::files], file)
        save_file({name: tensors[name] for name in names[number::files]}, folder / file)
    write(
        folder / "model.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": where},
    )


def write(path: Path, values: object) -> None:
    """Write a JSON file, its folder as well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, ensure_ascii=False))


# --- checkpoints --------------------------------------------------------------------------------

_QWEN2 = {
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "initializer_range": 0.02,
    "intermediate_size": INNER,
    "max_position_embeddings": 256,
    "max_window_layers": 28,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": KV_HEADS,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": False,
    "use_sliding_window": False,
    "vocab_size": VOCABULARY,
}


def dream(folder: Path, *extra: str) -> Path:
    """Write a Dream: in two weight files, a tokenizer without tokenizer.json, an auto_map."""
    ids = merges_tokenizer(
        folder,
        "DreamTokenizer",
        ("<|endoftext|>", "<|beginoftext|>", "<|mask|>", *extra),
        bos_token="<|beginoftext|>",
        eos_token="<|endoftext|>",
        mask_token="<|mask|>",
        pad_token="<|endoftext|>",
    )
    write(
        folder / "config.json",
        {
            **_QWEN2,
            "architectures": ["DreamModel"],
            "auto_map": AUTO_MAP,
            "bos_token_id": ids["<|endoftext|>"],
            "eos_token_id": ids["<|endoftext|>"],
            "mask_token_id": ids["<|mask|>"],
            "model_type": "Dream",
            "pad_token_id": ids["<|endoftext|>"],
        },
    )
    save(folder, weights(qwen_shapes(bias=True)), files=2)
    return folder


def dreamon(folder: Path) -> Path:
    """Write a DreamOn: a Dream with a token that becomes two."""
    return dream(folder, "<|expand|>")


def open_dcoder(folder: Path) -> Path:
    """Write an Open-dCoder: plain qwen2, tied, and a mask token in the tokenizer."""
    fast_tokenizer(
        folder,
        ("<|endoftext|>", "<|im_end|>", "<M>"),
        tokenizer_class="Qwen2Tokenizer",
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        mask_token="<M>",
    )
    end = len(vocabulary())
    write(
        folder / "config.json",
        {
            **_QWEN2,
            "architectures": ["Qwen2ForCausalLM"],
            "bos_token_id": end,
            "eos_token_id": end,
            "model_type": "qwen2",
            "tie_word_embeddings": True,
        },
    )
    save(folder, weights(qwen_shapes(bias=True, tied=True)))
    return folder


def a2d(folder: Path, base: str = "qwen3") -> Path:
    """Write a tiny-A2D on Qwen2 or Qwen3, tied as the small ones are."""
    ids = fast_tokenizer(
        folder,
        ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>"),
        tokenizer_class="Qwen2Tokenizer",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        mask_token="<|mask|>",
    )
    write(
        folder / "config.json",
        {
            **_QWEN2,
            "architectures": [f"A2D{base.capitalize()}LMHeadModel"],
            "auto_map": AUTO_MAP,
            "eos_token_id": ids["<|im_end|>"],
            "layer_types": ["full_attention"] * LAYERS,
            "model_type": f"a2d-{base}",
            "tie_word_embeddings": True,
            **({"head_dim": HEAD, "attention_bias": False} if base == "qwen3" else {}),
        },
    )
    save(folder, weights(qwen_shapes(bias=base == "qwen2", norms=base == "qwen3", tied=True)))
    return folder


def a2d_block(folder: Path) -> Path:
    """Write a tiny-A2D that sees blocks, which only its name says."""
    return a2d(folder / "Qwen3-0.6B-diffusion-bd3lm-v0.1")


def llada(folder: Path, *, low: bool = False) -> Path:
    """Write a LLaDA 8B or 1.5: OLMo's names and config keys.

    Args:
        low: the mask is token 5, as in iLLaDA.
    """
    mask = "<|mdm_mask|>"
    others = ("<|startoftext|>", "<|endoftext|>", *(["<|a|>", "<|b|>", "<|c|>"] if low else ()))
    ids = fast_tokenizer(
        folder,
        (*others, mask),
        first=low,
        nfc=False,
        tokenizer_class="PreTrainedTokenizerFast",
        bos_token="<|startoftext|>",
        eos_token="<|endoftext|>",
    )
    write(
        folder / "config.json",
        {
            "activation_type": "silu",
            "alibi": False,
            "alibi_bias_max": 8.0,
            "architectures": ["LLaDAModelLM"],
            "attention_dropout": 0.0,
            "attention_layer_norm": False,
            "attention_layer_norm_with_affine": True,
            "auto_map": AUTO_MAP,
            "bias_for_layer_norm": False,
            "block_group_size": 1,
            "block_type": "llama",
            "d_model": HIDDEN,
            "embedding_dropout": 0.0,
            "embedding_size": VOCABULARY,
            "eos_token_id": ids["<|endoftext|>"],
            "flash_attention": False,
            "include_bias": False,
            "include_qkv_bias": False,
            "init_device": "meta",
            "input_emb_norm": False,
            "layer_norm_type": "rms",
            "layer_norm_with_affine": True,
            "mask_token_id": ids[mask],
            "max_sequence_length": 256,
            "mlp_hidden_size": INNER,
            "mlp_ratio": 4,
            "model_type": "llada",
            "multi_query_attention": None,
            "n_heads": HEADS,
            "n_kv_heads": HEADS,
            "n_layers": LAYERS,
            "pad_token_id": ids["<|endoftext|>"],
            "precision": "amp_bf16",
            "rms_norm_eps": 1e-05,
            "rope": True,
            "rope_full_precision": True,
            "rope_theta": 500000.0,
            "scale_logits": False,
            "vocab_size": VOCABULARY,
            "weight_tying": False,
        },
    )
    save(folder, weights(llada_shapes()))
    return folder


def llada_moe(folder: Path) -> Path:
    """Write a LLaDA-MoE: `llada` by name, with experts."""
    ids = fast_tokenizer(
        folder,
        ("<|startoftext|>", "<|endoftext|>", "<|mask|>"),
        nfc=False,
        bos_token="<|startoftext|>",
        eos_token="<|endoftext|>",
        mask_token="<|mask|>",
    )
    write(
        folder / "config.json",
        {
            "architectures": ["LLaDAMoEModelLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "auto_map": AUTO_MAP,
            "clip_qkv": None,
            "dense_intermediate_size": INNER,
            "eos_token_id": ids["<|endoftext|>"],
            "expert_intermediate_size": 16,
            "hidden_act": "silu",
            "hidden_size": HIDDEN,
            "max_position_embeddings": 256,
            "model_type": "llada",
            "moe_layer_freq": [0, *[1] * (LAYERS - 1)],
            "moe_router_enable_expert_bias": False,
            "moe_router_score_function": "softmax",
            "norm_topk_prob": None,
            "num_attention_heads": HEADS,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "num_hidden_layers": LAYERS,
            "num_key_value_heads": HEADS,
            "pad_token_id": ids["<|endoftext|>"],
            "partial_rotary_factor": 1,
            "qk_layernorm": True,
            "rms_norm_eps": 1e-05,
            "rope_scaling": None,
            "rope_theta": 50000,
            "routed_scaling_factor": 1,
            "router_num_group": None,
            "router_topk_group": None,
            "shared_expert_intermediate_size": None,
            "tie_word_embeddings": False,
            "vocab_size": VOCABULARY,
        },
    )
    save(folder, weights(llada_moe_shapes(4, 16)))
    return folder


def sdar(folder: Path) -> Path:
    """Write an SDAR: Qwen3 in blocks of 4."""
    ids = fast_tokenizer(
        folder,
        ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|MASK|>"),
        tokenizer_class="Qwen2Tokenizer",
        eos_token="<|endoftext|>",
        mask_token="<|MASK|>",
        pad_token="<|endoftext|>",
    )
    write(
        folder / "config.json",
        {
            **_QWEN2,
            "architectures": ["SDARForCausalLM"],
            "attention_bias": False,
            "attn_implementation": "flex_attention",
            "auto_map": AUTO_MAP,
            "block_size": 4,
            "bos_token_id": ids["<|endoftext|>"],
            "debug": False,
            "eos_token_id": ids["<|endoftext|>"],
            "ep_size": 1,
            "fuse_cross_entropy": True,
            "head_dim": HEAD,
            "mask_token_id": ids["<|MASK|>"],
            "model_type": "sdar",
        },
    )
    save(folder, weights(qwen_shapes(norms=True)))
    return folder


def stable_diffcoder(folder: Path) -> Path:
    """Write a Stable-DiffCoder: Llama by name, marks at the bottom of the vocabulary, blocks of 4."""
    marks = (
        *("<[begin_of_sentence]>", "<[PAD_TOKEN]>", "<[end_of_sentence]>"),
        *("<[unk]>", "<[SEP_TOKEN]>", "<[MASK_TOKEN]>"),
        *("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"),
    )
    fast_tokenizer(
        folder,
        marks,
        first=True,
        nfc=False,
        bos_token="<[begin_of_sentence]>",
        eos_token="<[end_of_sentence]>",
        mask_token="<[MASK_TOKEN]>",
        pad_token="<[PAD_TOKEN]>",
    )
    write(
        folder / "config.json",
        {
            "architectures": ["StableDiffcoderForCausalLM"],
            "attention_bias": False,
            "auto_map": {"AutoModelForCausalLM": "modeling_x.StableDiffcoderForCausalLM"},
            "bos_token_id": 0,
            "eos_token_id": 2,
            "head_dim": HEAD,
            "hidden_act": "silu",
            "hidden_size": HIDDEN,
            "intermediate_size": INNER,
            "max_position_embeddings": 256,
            "mlp_bias": False,
            "model_type": "llama",
            "num_attention_heads": HEADS,
            "num_hidden_layers": LAYERS,
            "num_key_value_heads": KV_HEADS,
            "pad_token_id": 1,
            "rms_norm_eps": 1e-06,
            "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"},
            "tie_word_embeddings": False,
            "vocab_size": VOCABULARY,
        },
    )
    save(folder, weights(qwen_shapes()))
    return folder


FULL: dict[str, Callable[[Path], Path]] = {
    "dream": dream,
    "dream-coder": dream,
    "diffucoder": dream,
    "dreamon": dreamon,
    "open-dcoder": open_dcoder,
    "a2d-qwen2": lambda folder: a2d(folder, "qwen2"),
    "a2d-qwen3": lambda folder: a2d(folder, "qwen3"),
    "llada": llada,
    "llada-1.5": llada,
    "illada": lambda folder: llada(folder, low=True),
    "llada-moe": llada_moe,
}
BLOCK: dict[str, Callable[[Path], Path]] = {
    "a2d-bd3lm": a2d_block,
    "sdar": sdar,
    "stable-diffcoder": stable_diffcoder,
}


def changed(folder: Path, file: str, **values: Any) -> None:
    """Change values of a JSON file; None takes one out."""
    path = folder / file
    held = {**json.loads(path.read_text()), **values}
    write(path, {name: value for name, value in held.items() if value is not None})

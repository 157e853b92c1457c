"""A DiffusionGemma as Google publishes it, scaled down: names, shapes, config keys and tokenizer.

The text part stands once, under the decoder's names; of the encoder there is a factor for each layer,
and the part for pictures. Layers with full attention have wider heads, fewer of them for keys, and no
values of their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from models import published

MARKS = (
    *("<pad>", "<eos>", "<bos>", "<unk>", "<mask>"),
    *("<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|image>", "<|image|>", "<image|>"),
)
# What a talk looks like in the published template, save tools and pictures.
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' }}"
    "{{ message['content'] | trim }}{{ '<turn|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|turn>model\\n' }}"
    "{% if not enable_thinking | default(false) %}{{ '<|channel>thought\\n<channel|>' }}{% endif %}{% endif %}"
)
CANVAS, WINDOW = 16, 12
HIDDEN, INNER, EXPERTS, EXPERT_INNER = 32, 48, 4, 16
LAYERS = ("sliding_attention", "sliding_attention", "full_attention")
HEADS, KV_HEADS, HEAD, WIDE_KV_HEADS, WIDE_HEAD = 4, 2, 8, 1, 16
PICTURES = 16


def make(folder: Path, seed: int = 0, **changes: Any) -> Path:
    """Write a DiffusionGemma into `folder` and return it.

    Args:
        changes: to generation_config.json.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ids = _tokenizer(folder)
    vocabulary = 8 * -(-len(ids) // 8)
    published.write(folder / "config.json", _config(ids, vocabulary))
    published.write(
        folder / "generation_config.json",
        {
            "bos_token_id": ids["<bos>"],
            "confidence_threshold": 0.005,
            "eos_token_id": [ids["<eos>"], ids["<turn|>"]],
            "max_denoising_steps": 48,
            "max_new_tokens": CANVAS,
            "pad_token_id": ids["<pad>"],
            "return_dict_in_generate": True,
            "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.1},
            "stability_threshold": 1,
            "t_max": 0.8,
            "t_min": 0.4,
            "transformers_version": "5.8.0",
            **changes,
        },
    )
    published.write(folder / "processor_config.json", {"processor_class": "Gemma4Processor"})
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    made = published.weights(_shapes(vocabulary), seed)
    for layer in range(len(LAYERS)):
        # One each, and not the same, so that mistaking them shows.
        made[f"model.decoder.layers.{layer}.layer_scalar"] = torch.tensor([0.5 + 0.1 * layer])
        made[f"model.encoder.language_model.layers.{layer}.layer_scalar"] = torch.tensor(
            [0.9 - 0.2 * layer]
        )
    published.save(folder, made)
    return folder


def _tokenizer(folder: Path) -> dict[str, int]:
    """Write tokenizer.json and tokenizer_config.json: BPE that falls back to bytes, "▁" for a space."""
    letters = [chr(one) for one in range(0x21, 0x7F)]
    pieces = ["▁", "\n", "\t", *letters, "re", "tu", "retu", "rn", "return", "▁=", "▁▁"]
    merges = [
        ["r", "e"],
        ["t", "u"],
        ["re", "tu"],
        ["r", "n"],
        ["retu", "rn"],
        ["▁", "="],
        ["▁", "▁"],
    ]
    entries = [*MARKS, *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    ids = {text: one for one, text in enumerate(entries)}
    published.write(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {
                    "id": ids[text],
                    "content": text,
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
                for text in MARKS
            ],
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"String": " "},
                "behavior": "MergedWithPrevious",
                "invert": False,
            },
            "post_processor": None,
            "decoder": {
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
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
                "ignore_merges": False,
                "vocab": ids,
                "merges": merges,
            },
        },
    )
    published.write(
        folder / "tokenizer_config.json",
        {
            "bos_token": "<bos>",
            "eos_token": "<eos>",
            "mask_token": "<mask>",
            "pad_token": "<pad>",
            "tokenizer_class": "GemmaTokenizer",
            "unk_token": "<unk>",
        },
    )
    return ids


def _config(ids: dict[str, int], vocabulary: int) -> dict[str, Any]:
    return {
        "architectures": ["DiffusionGemmaForBlockDiffusion"],
        "boi_token_id": ids["<|image>"],
        "canvas_length": CANVAS,
        "dtype": "bfloat16",
        "eoi_token_id": ids["<image|>"],
        "eos_token_id": [ids["<eos>"], ids["<turn|>"]],
        "image_token_id": ids["<|image|>"],
        "initializer_range": 0.02,
        "model_type": "diffusion_gemma",
        "text_config": {
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": ids["<bos>"],
            "dtype": "bfloat16",
            "eos_token_id": ids["<eos>"],
            "final_logit_softcapping": 30.0,
            "global_head_dim": WIDE_HEAD,
            "head_dim": HEAD,
            "hidden_activation": "gelu_pytorch_tanh",
            "hidden_size": HIDDEN,
            "initializer_range": 0.02,
            "intermediate_size": INNER,
            "layer_types": list(LAYERS),
            "max_position_embeddings": 512,
            "model_type": "diffusion_gemma_text",
            "moe_intermediate_size": EXPERT_INNER,
            "num_attention_heads": HEADS,
            "num_experts": EXPERTS,
            "num_global_key_value_heads": WIDE_KV_HEADS,
            "num_hidden_layers": len(LAYERS),
            "num_key_value_heads": KV_HEADS,
            "pad_token_id": ids["<pad>"],
            "rms_norm_eps": 1e-06,
            "rope_parameters": {
                "full_attention": {
                    "partial_rotary_factor": 0.25,
                    "rope_theta": 1000000.0,
                    "rope_type": "proportional",
                },
                "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
            },
            "sliding_window": WINDOW,
            "tie_word_embeddings": True,
            "top_k_experts": 2,
            "use_bidirectional_attention": "vision",
            "vocab_size": vocabulary,
        },
        "tie_word_embeddings": True,
        "transformers_version": "5.8.0",
        "vision_config": {
            "attention_bias": False,
            "default_output_length": 280,
            "global_head_dim": 8,
            "head_dim": 8,
            "hidden_activation": "gelu_pytorch_tanh",
            "hidden_size": PICTURES,
            "intermediate_size": 24,
            "max_position_embeddings": 131072,
            "model_type": "gemma4_vision",
            "num_attention_heads": 2,
            "num_hidden_layers": 1,
            "num_key_value_heads": 2,
            "patch_size": 4,
            "pooling_kernel_size": 3,
            "position_embedding_size": 16,
            "rms_norm_eps": 1e-06,
            "standardize": True,
            "use_clipped_linears": False,
        },
        "vision_soft_tokens_per_image": 280,
    }


def _shapes(vocabulary: int) -> published.Shapes:
    decoder = "model.decoder"
    shapes: published.Shapes = {
        f"{decoder}.embed_tokens.weight": (vocabulary, HIDDEN),
        f"{decoder}.norm.weight": (HIDDEN,),
        f"{decoder}.self_conditioning.pre_norm.weight": (HIDDEN,),
        **_mlp(f"{decoder}.self_conditioning"),
        **_pictures(),
    }
    for layer, kind in enumerate(LAYERS):
        shapes |= _layer(f"{decoder}.layers.{layer}", wide=kind == "full_attention")
    return shapes


def _layer(at: str, *, wide: bool) -> published.Shapes:
    head, keys = (WIDE_HEAD, WIDE_KV_HEADS) if wide else (HEAD, KV_HEADS)
    shapes = {
        f"{at}.{norm}.weight": (HIDDEN,)
        for norm in (
            *("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm"),
            *("post_feedforward_layernorm", "post_feedforward_layernorm_1"),
            *("post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"),
        )
    }
    shapes |= {
        f"{at}.self_attn.q_proj.weight": (HEADS * head, HIDDEN),
        f"{at}.self_attn.k_proj.weight": (keys * head, HIDDEN),
        f"{at}.self_attn.o_proj.weight": (HIDDEN, HEADS * head),
        f"{at}.self_attn.q_norm.weight": (head,),
        f"{at}.self_attn.k_norm.weight": (head,),
        f"{at}.router.per_expert_scale": (EXPERTS,),
        f"{at}.router.proj.weight": (EXPERTS, HIDDEN),
        f"{at}.router.scale": (HIDDEN,),
        f"{at}.experts.gate_up_proj": (EXPERTS, 2 * EXPERT_INNER, HIDDEN),
        f"{at}.experts.down_proj": (EXPERTS, HIDDEN, EXPERT_INNER),
        **_mlp(f"{at}.mlp"),
    }
    if not wide:
        shapes[f"{at}.self_attn.v_proj.weight"] = (keys * head, HIDDEN)
    return shapes


def _mlp(at: str) -> published.Shapes:
    return {
        f"{at}.gate_proj.weight": (INNER, HIDDEN),
        f"{at}.up_proj.weight": (INNER, HIDDEN),
        f"{at}.down_proj.weight": (HIDDEN, INNER),
    }


def _pictures() -> published.Shapes:
    tower, inner = "model.encoder.vision_tower", 24
    at = f"{tower}.encoder.layers.0"
    return {
        "model.encoder.embed_vision.embedding_projection.weight": (HIDDEN, PICTURES),
        f"{tower}.patch_embedder.input_proj.weight": (PICTURES, 3 * 4 * 4),
        f"{tower}.patch_embedder.position_embedding_table": (2, 16, PICTURES),
        f"{tower}.std_bias": (PICTURES,),
        f"{tower}.std_scale": (PICTURES,),
        **{
            f"{at}.{norm}.weight": (PICTURES,)
            for norm in (
                *("input_layernorm", "post_attention_layernorm"),
                *("pre_feedforward_layernorm", "post_feedforward_layernorm"),
            )
        },
        **{f"{at}.self_attn.{part}_norm.weight": (8,) for part in "qk"},
        **{f"{at}.self_attn.{part}_proj.linear.weight": (PICTURES, PICTURES) for part in "qkvo"},
        f"{at}.mlp.gate_proj.linear.weight": (inner, PICTURES),
        f"{at}.mlp.up_proj.linear.weight": (inner, PICTURES),
        f"{at}.mlp.down_proj.linear.weight": (PICTURES, inner),
    }

"""A plain decoder by hand, to hold the loaders to: one token at a time in mind, no class of transformers'."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

Weights = dict[str, Tensor]


def tensors(folder: Path) -> Weights:
    """Return all tensors of a checkpoint."""
    found: Weights = {}
    for path in folder.glob("*.safetensors"):
        found |= load_file(path)
    return found


def logits(folder: Path, ids: Tensor, seen: Tensor | None = None) -> Tensor:
    """Return (length, vocabulary) logits of a published checkpoint for (length,) tokens.

    Args:
        seen: (length, length) booleans, what each place sees; None for everything.
    """
    config = json.loads((folder / "config.json").read_text())
    held = tensors(folder)
    if "d_model" in config:
        return _llada(config, held, ids, seen)
    return _qwen(config, held, ids, seen)


def _llada(config: dict[str, Any], held: Weights, ids: Tensor, seen: Tensor | None) -> Tensor:
    at = "model.transformer"
    theta, eps, heads = config["rope_theta"], config["rms_norm_eps"], config["n_heads"]
    x = held[f"{at}.wte.weight"][ids]
    for layer in range(config["n_layers"]):
        block = f"{at}.blocks.{layer}"
        part = lambda name, block=block: held[f"{block}.{name}.weight"]  # noqa: E731
        h = norm(x, part("attn_norm"), eps)
        q, k, v = (_heads(h @ part(f"{one}_proj").T, heads) for one in "qkv")
        x = x + attention(q, k, v, theta, seen) @ part("attn_out").T
        h = norm(x, part("ff_norm"), eps)
        x = x + (F.silu(h @ part("ff_proj").T) * (h @ part("up_proj").T)) @ part("ff_out").T
    return norm(x, held[f"{at}.ln_f.weight"], eps) @ held[f"{at}.ff_out.weight"].T


def _qwen(config: dict[str, Any], held: Weights, ids: Tensor, seen: Tensor | None) -> Tensor:
    theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
    eps = config["rms_norm_eps"]
    embeddings = held["model.embed_tokens.weight"]
    x = embeddings[ids]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        h = norm(x, held[f"{at}.input_layernorm.weight"], eps)
        x = x + _qwen_attention(config, held, f"{at}.self_attn", h, theta, eps, seen)
        h = norm(x, held[f"{at}.post_attention_layernorm.weight"], eps)
        mlp = _experts if f"{at}.mlp.gate.weight" in held else _swiglu
        x = x + mlp(held, f"{at}.mlp", h, config)
    head = held.get("lm_head.weight", embeddings)
    return norm(x, held["model.norm.weight"], eps) @ head.T


def _qwen_attention(
    config: dict[str, Any],
    held: Weights,
    at: str,
    h: Tensor,
    theta: float,
    eps: float,
    seen: Tensor | None,
) -> Tensor:
    counts = {"q": config["num_attention_heads"], "k": config["num_key_value_heads"]}
    made = {}
    for one in "qkv":
        flat = h @ held[f"{at}.{one}_proj.weight"].T + held.get(f"{at}.{one}_proj.bias", 0.0)
        made[one] = _heads(flat, counts.get(one, counts["k"]))
        if (weight := held.get(f"{at}.{one}_norm.weight")) is not None:
            made[one] = norm(made[one], weight, eps)
    return attention(made["q"], made["k"], made["v"], theta, seen) @ held[f"{at}.o_proj.weight"].T


def _swiglu(held: Weights, at: str, h: Tensor, _: dict[str, Any]) -> Tensor:
    gate, up, down = (held[f"{at}.{part}_proj.weight"] for part in ("gate", "up", "down"))
    return (F.silu(h @ gate.T) * (h @ up.T)) @ down.T


def _experts(held: Weights, at: str, h: Tensor, config: dict[str, Any]) -> Tensor:
    shares = torch.softmax(h @ held[f"{at}.gate.weight"].T, -1)
    rows = []
    for row, share in zip(h, shares, strict=True):
        best = share.topk(config["num_experts_per_tok"]).indices.tolist()
        rows.append(
            sum(share[one] * _swiglu(held, f"{at}.experts.{one}", row, config) for one in best)
        )
    return torch.stack(rows)


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return `x` scaled to a mean square of 1, times `weight` (RMSNorm)."""
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight


def _heads(flat: Tensor, count: int) -> Tensor:
    return flat.view(len(flat), count, -1).transpose(0, 1)


def turned(x: Tensor, theta: float) -> Tensor:
    """Return (heads, length, size) vectors turned by their place, pairs half a vector apart (RoPE)."""
    size = x.shape[-1]
    speed = theta ** (-torch.arange(0, size, 2) / size)
    angle = torch.arange(x.shape[1])[:, None] * speed
    left, right = x[..., : size // 2], x[..., size // 2 :]
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


def attention(q: Tensor, k: Tensor, v: Tensor, theta: float, seen: Tensor | None) -> Tensor:
    """Return (length, heads * size) what each place gathers."""
    k, v = (one.repeat_interleave(len(q) // len(k), 0) for one in (k, v))
    scores = turned(q, theta) @ turned(k, theta).transpose(1, 2) / math.sqrt(q.shape[-1])
    if seen is not None:
        scores = scores.masked_fill(~seen, float("-inf"))
    return (torch.softmax(scores, -1) @ v).transpose(0, 1).flatten(1)


def in_blocks(length: int, block: int) -> Tensor:
    """Return (length, length) booleans: each place sees its own block and those before."""
    number = torch.arange(length) // block
    return number[:, None] >= number[None, :]

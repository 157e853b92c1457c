"""The model in training: made from a shape or from a folder, and one pass through it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

from frostline.train.objective import BEGIN, END, PAD, Batch


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a model; all else about its form is fixed."""

    vocab_size: int = 8192
    hidden_size: int = 256
    num_hidden_layers: int = 6
    num_attention_heads: int = 4
    head_dim: int = 64
    intermediate_size: int = 768


def config(shape: Shape) -> dict[str, Any]:
    """Return the content of config.json."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        **asdict(shape),
        "num_key_value_heads": shape.num_attention_heads,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "hidden_act": "silu",
        "bos_token_id": BEGIN,
        "eos_token_id": END,
        "pad_token_id": PAD,
        "dtype": "float16",
    }


def new(values: dict[str, Any], seed: int) -> Any:
    """Return a fresh model of this config, in fp32, the same for the same seed."""
    torch.manual_seed(seed)
    made: Any = transformers.AutoConfig.for_model(**{**values, "dtype": "float32"})
    made._attn_implementation = "sdpa"
    model: Any = transformers.Qwen3ForCausalLM(made).float()
    with torch.no_grad():
        for name, one in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                # A block starts as nothing added, which is where Muon likes to start from.
                one.zero_()
    return model


def load(config_path: Path, tensors: dict[str, Tensor]) -> Any:
    """Return the model of a config.json with these weights, in fp32, ready to be trained on."""
    model = new(json.loads(config_path.read_text("utf-8")), seed=0)
    take(model, tensors)
    return model


def take(model: Any, tensors: dict[str, Tensor]) -> None:
    """Set the model's weights to these; the head is the embedding and need not be among them."""
    tensors = {name: one.float() for name, one in tensors.items()}
    missing, unknown = model.load_state_dict(tensors, strict=False)
    if unknown or set(missing) - {"lm_head.weight"}:
        raise ValueError(f"weights of another form: {unknown or missing}")


def hidden(model: Any, ids: Tensor, causal: bool) -> Tensor:
    """Return (rows, window, width): the last layer's output, each token seeing all or those before.

    Handed ready-made masks of None, the class builds none of its own, and attention goes by the
    flag of its layers alone: faster by a quarter than an all-zero mask, and the same numbers.
    """
    for layer in model.model.layers:
        layer.self_attn.is_causal = causal
    out = model.model(input_ids=ids, attention_mask={"full_attention": None}, use_cache=False)
    result: Tensor = out.last_hidden_state
    return result


def loss(model: Any, batch: Batch) -> Tensor:
    """Return the mean surprise (nats) of the batch's answers, by their weights."""
    out = hidden(model, batch.ids, batch.causal)
    # The head is a third of the work: only the asked places go through it.
    logits = model.lm_head(out.flatten(0, 1)[batch.read_at])
    each = functional.cross_entropy(logits.float(), batch.answers, reduction="none")
    return (each * batch.weights).sum() / batch.weights.sum()


def half_pays(device: torch.device) -> bool:
    """Return True when this machine multiplies faster in bf16 than in fp32, which it is asked."""
    if device.type != "cpu":
        return True
    taken = {}
    for kind in (torch.float32, torch.bfloat16):
        a = torch.ones(512, 512, dtype=kind)
        best = float("inf")
        for _ in range(4):
            started = time.perf_counter()
            for _ in range(4):
                a @ a
            best = min(best, time.perf_counter() - started)
        taken[kind] = best
    return taken[torch.bfloat16] * 1.3 < taken[torch.float32]


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights by name, without the head, which is the embedding."""
    return {
        name: one.detach().cpu().contiguous()
        for name, one in model.named_parameters()
        if name != "lm_head.weight"
    }

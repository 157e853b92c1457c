"""Model folders made from a seed: real architectures, a few thousand parameters, a byte tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

SPECIAL = ("<|end|>", "<|mask|>", "<|pad|>", "<|begin|>")
END, MASK, PAD, BEGIN = range(4)
_MERGES = [("r", "e"), ("t", "u"), ("re", "tu"), ("r", "n"), ("retu", "rn"), ("Ġ", "="), ("Ċ", "Ġ")]


def tokenizer() -> Tokenizer:
    """Return a byte-level tokenizer with a few longer pieces, such as "return" and " ="."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = [*SPECIAL, *letters, *(a + b for a, b in _MERGES)]
    made = Tokenizer(BPE({entry: place for place, entry in enumerate(entries)}, _MERGES))
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def spec(**changes: Any) -> dict[str, Any]:
    """Return what frostline.json says of a tiny model."""
    return {
        "name": "tiny",
        "noise": {"kind": "mask", "id": MASK},
        "shift": 1,
        "attention": "full",
        "length": {"kind": "end_pad", "id": PAD},
        "max_context": 128,
        "banned": [END, MASK, BEGIN],
        "begin_of_file": BEGIN,
        **changes,
    }


def config(kind: str = "qwen3", **changes: Any) -> dict[str, Any]:
    """Return what config.json says of a tiny model."""
    return {
        "model_type": kind,
        "vocab_size": 320,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "intermediate_size": 48,
        "max_position_embeddings": 256,
        "tie_word_embeddings": True,
        **changes,
    }


def reference(folder: Path) -> Any:
    """Return transformers' own module of a folder, as transformers itself loads it."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="sdpa"
    )
    return model.eval()


def make(folder: Path, kind: str = "qwen3", *, seed: int = 0, **changes: Any) -> Path:
    """Write a model into `folder` and return it.

    Args:
        changes: to frostline.json; under `config` those to config.json.
    """
    values = config(kind, **changes.pop("config", {}))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(values))
    (folder / "frostline.json").write_text(json.dumps(spec(**changes)))
    (folder / "tokenizer.json").write_text(tokenizer().to_str())
    torch.manual_seed(seed)
    module = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(**values), dtype=torch.float32
    )
    tensors = {
        # Wide enough that the model has opinions: with the usual 0.02 all tokens are alike.
        name: (torch.randn_like(tensor) * 0.3 if tensor.dim() == 2 else tensor).half()
        for name, tensor in module.state_dict().items()
    }
    if values["tie_word_embeddings"]:
        del tensors["lm_head.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder

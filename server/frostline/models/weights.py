"""config.json and safetensors to a module of transformers' own, and nothing that executes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError, safe_open
from torch import nn

from frostline.errors import ModelUnusable

Progress = Callable[[float], None]

# model_type of config.json -> transformers' own class; anything else is refused, never fetched.
_CLASSES = {
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "llama": "LlamaForCausalLM",
}


def load(folder: Path, device: torch.device, progress: Progress) -> nn.Module:
    """Return the model of `folder` on `device`, ready to run: fp32 on a CPU, else bf16.

    Raises:
        ModelUnusable: a file is missing or torn, or the architecture is not known.
    """
    config, model = _bare(folder)
    dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
    tensors = _tensors(folder, dtype, device, progress)
    embeddings = tensors.get("model.embed_tokens.weight")
    if config.tie_word_embeddings and embeddings is not None:
        # A file that stores both means both: transformers does not tie them either.
        tensors.setdefault("lm_head.weight", embeddings)
    try:
        model.load_state_dict(tensors, strict=True, assign=True)
    except RuntimeError as error:
        # A headline, and a line for each kind of misfit; the first of them says enough.
        misfit = str(error).splitlines()[1].strip().rstrip(".")
        raise ModelUnusable(
            f"the weights in {folder} do not fit its config.json: {misfit[:200]}"
        ) from error
    _rebuild_rotary(model, config, device)
    return model.eval().requires_grad_(False)


def _bare(folder: Path) -> tuple[Any, nn.Module]:
    """Return the configuration of `folder` and its module without weights."""
    path = folder / "config.json"
    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelUnusable(f"{folder} has no config.json; it is no model folder") from error
    except ValueError as error:
        raise ModelUnusable(f"{path} is not valid JSON: {error}") from error
    kind = values.get("model_type") if isinstance(values, dict) else None
    if kind not in _CLASSES:
        known = ", ".join(sorted(_CLASSES))
        raise ModelUnusable(f"models of type {kind!r} cannot be run; these can: {known}")
    try:
        config = transformers.AutoConfig.for_model(**values)
        config._attn_implementation = "sdpa"
        with torch.device("meta"):
            return config, getattr(transformers, _CLASSES[kind])(config)
    except Exception as error:  # whatever a wrong value makes the library stumble over
        why = " ".join(str(error).split())
        raise ModelUnusable(f"{path} describes no model that can be built: {why[:200]}") from error


def _tensors(
    folder: Path, dtype: torch.dtype, device: torch.device, progress: Progress
) -> dict[str, torch.Tensor]:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelUnusable(
            f"{folder} has no safetensors files; weights of other kinds are not opened"
        )
    total = sum(path.stat().st_size for path in files)
    tensors: dict[str, torch.Tensor] = {}
    done = 0
    for path in files:
        try:
            with safe_open(path, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - not a dict
                    tensor = opened.get_tensor(name)
                    done += tensor.numel() * tensor.element_size()
                    # Old checkpoints store the rotary tables too; they are computed here.
                    if not name.endswith(".rotary_emb.inv_freq"):
                        tensors[name] = tensor.to(device=device, dtype=dtype)
                    progress(min(done / total, 1.0))
        except (SafetensorError, OSError) as error:
            raise ModelUnusable(f"{path} is damaged ({error}); fetch it again") from error
    return tensors


def _rebuild_rotary(model: nn.Module, config: Any, device: torch.device) -> None:
    # Rotary tables are computed, not stored, so a module born on "meta" has none.
    for name, module in list(model.named_modules()):
        if name.endswith("rotary_emb"):
            parent = model.get_submodule(name.rpartition(".")[0])
            setattr(parent, name.rpartition(".")[2], type(module)(config).to(device))

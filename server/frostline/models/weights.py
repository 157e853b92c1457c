"""config.json and safetensors to a module of transformers' own, and nothing that executes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from frostline.errors import ModelUnusable
from frostline.models import families
from frostline.models.families.family import Family
from frostline.models.published import Published

Progress = Callable[[float], None]

# transformers' own classes by their own model type; nothing else is built.
_CLASSES = {
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "llama": "LlamaForCausalLM",
    "starcoder2": "Starcoder2ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "diffusion_gemma": "DiffusionGemmaForBlockDiffusion",
}
_EXPERT = re.compile(r"(.+\.experts)\.(\d+)\.(gate|up|down)_proj\.weight")


def class_of(model_type: str) -> Any:
    """Return transformers' own class for models of this type."""
    return getattr(transformers, _CLASSES[model_type])


def load(folder: Path, device: torch.device, dtype: torch.dtype, progress: Progress) -> nn.Module:
    """Return the model of `folder` on `device`, ready to run, its numbers of `dtype`.

    Raises:
        ModelUnusable: a file is missing or torn, or the architecture is not known.
    """
    published = Published(folder)
    family = families.of(published)
    config, model = _bare(published, family)
    tensors = {}
    for name, tensor in _read(files_of(folder), progress, family.left_out):
        # Old checkpoints store the rotary tables too; they are computed here.
        if not name.endswith(".rotary_emb.inv_freq"):
            tensors[family.tensor(name)] = tensor.to(device=device, dtype=dtype)
    _stack_experts(tensors)
    _tie(model, tensors, family)
    return fitted(model, config, tensors, device, folder)


def fitted(
    model: nn.Module, config: Any, tensors: dict[str, Tensor], device: torch.device, where: Path
) -> nn.Module:
    """Return `model` with `tensors` in it, ready to run.

    Raises:
        ModelUnusable: they do not fit.
    """
    embeddings = tensors.get("model.embed_tokens.weight")
    if config.tie_word_embeddings and embeddings is not None:
        # A file that stores both means both: transformers does not tie them either.
        tensors.setdefault("lm_head.weight", embeddings)
    try:
        model.load_state_dict(tensors, strict=True, assign=True)
    except RuntimeError as error:
        # A headline, and a line for each kind of misfit; the first of them says enough.
        misfit = str(error).splitlines()[1].strip().rstrip(".")
        said = "its config.json" if where.is_dir() else "what it says of itself"
        raise ModelUnusable(f"the weights in {where} do not fit {said}: {misfit[:200]}") from error
    _compute_tables(model, config, device)
    return model.eval().requires_grad_(False)


def numbers_in(folder: Path) -> int:
    """Return how many numbers of the weights in `folder` are loaded, from the files' headers alone.

    Raises:
        ModelUnusable: a file is missing or torn.
    """
    count, left_out = 0, families.of(Published(folder)).left_out
    for path in files_of(folder):
        try:
            with safe_open(path, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - not a dict
                    numbers = 0 if name.startswith(left_out) else 1
                    for size in opened.get_slice(name).get_shape():
                        numbers *= size
                    count += numbers
        except (SafetensorError, OSError) as error:
            raise _damaged(path, error) from error
    return count


def files_of(folder: Path) -> list[Path]:
    """Return the weight files of `folder`: those that its index names, else all safetensors files.

    Raises:
        ModelUnusable: there are none, or one that the index names is missing.
    """
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise ModelUnusable(
                f"{folder} has no safetensors files; weights of other kinds are not opened"
            )
        return files
    try:
        names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
        # A name with a folder in it would lead out of this one.
        files = [folder / Path(name).name for name in names]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelUnusable(f"{index} is damaged; fetch it again") from error
    if missing := [path.name for path in files if not path.is_file()]:
        raise ModelUnusable(
            f"{folder} lacks {missing[0]} ({len(missing)} of {len(files)} weight files are missing); "
            "fetch the model again"
        )
    return files


def _bare(published: Published, family: Family) -> tuple[Any, nn.Module]:
    """Return the configuration of a checkpoint and its module without weights."""
    path = published.folder / "config.json"
    try:
        values = {**family.config(published.config)}
        # Whatever code it names is not looked at.
        values.pop("auto_map", None)
        values["model_type"] = family.base
        config = transformers.AutoConfig.for_model(**values)
        config._attn_implementation = "sdpa"
        with torch.device("meta"):
            model = class_of(family.base)(config)
        for part in family.left_out:
            above, _, name = part.rstrip(".").rpartition(".")
            delattr(model.get_submodule(above), name)
        return config, model
    except ModelUnusable:
        raise
    except Exception as error:  # whatever a wrong value makes the library stumble over
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ModelUnusable(f"{path} describes no model that can be built: {why[:200]}") from error


def _read(
    files: list[Path], progress: Progress, left_out: tuple[str, ...]
) -> Iterator[tuple[str, Tensor]]:
    """Yield each tensor with its name, telling how far it got."""
    total = sum(path.stat().st_size for path in files)
    done = 0
    for path in files:
        try:
            with safe_open(path, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - not a dict
                    if name.startswith(left_out):
                        continue
                    tensor = opened.get_tensor(name)
                    done += tensor.numel() * tensor.element_size()
                    yield name, tensor
                    progress(min(done / total, 1.0))
        except (SafetensorError, OSError) as error:
            raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> ModelUnusable:
    return ModelUnusable(f"{path} is damaged ({error}); fetch it again")


def _stack_experts(tensors: dict[str, Tensor]) -> None:
    """Put the experts of a layer into one tensor each for the two halves, as transformers has them."""
    layers: dict[str, dict[tuple[str, int], Tensor]] = {}
    for name in list(tensors):
        if found := _EXPERT.fullmatch(name):
            layer, number, part = found.groups()
            layers.setdefault(layer, {})[part, int(number)] = tensors.pop(name)
    for layer, parts in layers.items():
        count = 1 + max(number for _, number in parts)
        if len(parts) != 3 * count:
            raise ModelUnusable(
                f"an expert of {layer} is missing in the weights; fetch the model again"
            )
        tensors[f"{layer}.gate_up_proj"] = torch.stack(
            [torch.cat([parts["gate", one], parts["up", one]]) for one in range(count)]
        )
        tensors[f"{layer}.down_proj"] = torch.stack([parts["down", one] for one in range(count)])


def _tie(model: nn.Module, tensors: dict[str, Tensor], family: Family) -> None:
    """Put the tensors that a checkpoint does not repeat where they stand a second time."""
    for name in model.state_dict():
        if name not in tensors and (other := family.tied(name)) in tensors:
            tensors[name] = tensors[other]


def _compute_tables(model: nn.Module, config: Any, device: torch.device) -> None:
    # What is computed and not stored, a module born on "meta" has not: rotary tables, and the factor
    # that Gemma's embeddings are multiplied with.
    for name, module in list(model.named_modules()):
        if name.endswith("rotary_emb"):
            parent = model.get_submodule(name.rpartition(".")[0])
            made = type(module)(getattr(module, "config", config)).to(device)
            setattr(parent, name.rpartition(".")[2], made)
        elif hasattr(module, "scalar_embed_scale"):
            module.embed_scale = torch.tensor(module.scalar_embed_scale, device=device)

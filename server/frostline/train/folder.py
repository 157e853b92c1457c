"""A model folder as the product loads it, and checkpoints to go on from. Safetensors and JSON only."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from frostline.errors import BadPlace
from frostline.train.objective import BEGIN, END, MASK, MIDDLE, PAD, PREFIX, SUFFIX

EXPAND = 7

# Bytes of a file of weights, less what its header takes.
PIECE = 60_000_000

# How the weights are to be run; read back by frostline.models.spec.
SPEC: dict[str, Any] = {
    "name": "frostline-embedded",
    "noise": {"kind": "mask", "id": MASK},
    "shift": 1,
    "attention": "full",
    "length": {"kind": "end_pad", "id": PAD},
    "self_conditioning": False,
    "edits_unmasked": False,
    "max_context": 384,
    "special": {
        "end": END,
        "mask": MASK,
        "pad": PAD,
        "begin": BEGIN,
        "prefix": PREFIX,
        "suffix": SUFFIX,
        "middle": MIDDLE,
        "expand": EXPAND,
    },
    "banned": [END, MASK, BEGIN, PREFIX, SUFFIX, MIDDLE, EXPAND],
    "begin_of_file": BEGIN,
    "left_to_right": {
        "begin": BEGIN,
        "fim": ["prefix", "suffix", "middle"],
        "fim_order": "PSM",
        "stop": END,
    },
    "trained_on": "Python",
    "instruction": False,
}


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run stands. `elapsed` counts seconds of training, whatever lay between."""

    step: int = 0
    tokens: int = 0
    elapsed: float = 0.0
    seed: int = 0


def write_form(folder: Path, config: dict[str, Any], tokenizer: Path) -> None:
    """Write all of a model folder but the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    (folder / "frostline.json").write_text(json.dumps(SPEC, indent=2) + "\n", "utf-8")
    if tokenizer.resolve() != (folder / "tokenizer.json").resolve():
        shutil.copyfile(tokenizer, folder / "tokenizer.json")


def write_weights(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Write the weights in fp16; the old ones stay until the new ones are whole.

    Up to `PIECE` bytes they are one model.safetensors; above, several files and the index that
    published checkpoints have, so that they can be carried where large files cannot.
    """
    halves = {name: one.half() for name, one in tensors.items()}
    if not all(bool(torch.isfinite(one).all()) for one in halves.values()):
        raise FloatingPointError("the weights are not finite in fp16; nothing was written")
    pieces = _pieces(halves)
    names = [_name(at, len(pieces)) for at in range(len(pieces))]
    for name, piece in zip(names, pieces, strict=True):
        part = folder / f"{name}.part"
        save_file(piece, part, metadata={"format": "pt"})
        # The library makes files for the owner's eyes only; weights are for all who may read the folder.
        part.chmod(0o644)
    for name in names:
        (folder / f"{name}.part").replace(folder / name)
    if len(pieces) > 1:
        total = sum(one.numel() * one.element_size() for one in halves.values())
        where = {key: name for name, piece in zip(names, pieces, strict=True) for key in piece}
        index = {"metadata": {"total_size": total}, "weight_map": where}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1), "utf-8")


def _pieces(tensors: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """Return the tensors in groups of at most `PIECE` bytes; no tensor is cut."""
    pieces: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, one in tensors.items():
        more = one.numel() * one.element_size()
        if size + more > PIECE and pieces[-1]:
            pieces.append({})
            size = 0
        pieces[-1][name] = one
        size += more
    return pieces


def _name(at: int, pieces: int) -> str:
    return "model.safetensors" if pieces == 1 else f"model-{at + 1:05}-of-{pieces:05}.safetensors"


def export(folder: Path, to: Path) -> list[Path]:
    """Return the files of the model in `folder`, copied to another without its checkpoints."""
    to.mkdir(parents=True, exist_ok=True)
    form = [
        folder / name for name in ("config.json", "frostline.json", "tokenizer.json", "CARD.md")
    ]
    return [
        Path(shutil.copy2(file, to))
        for file in (*form, *sorted(folder.glob("model*.safetensors*")))
        if file.is_file()
    ]


def read_weights(place: Path) -> dict[str, Tensor]:
    """Return the weights in a folder, in one file or in pieces, or those of a .safetensors file.

    Raises:
        BadPlace: there are none.
    """
    files = sorted(place.glob("model*.safetensors")) if place.is_dir() else [place]
    if not files or not files[0].is_file():
        raise BadPlace(f"{place} has no model.safetensors to go on from")
    return {name: one for file in files for name, one in load_file(file).items()}


def save(folder: Path, tensors: dict[str, Tensor], position: Position) -> None:
    """Write a checkpoint: weights and the optimiser's state, in fp32, and where the run stands."""
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    save_file(tensors, part / "state.safetensors")
    (part / "state.json").write_text(json.dumps(asdict(position), indent=1), "utf-8")
    old = folder.with_name(folder.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    part.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def restore(folder: Path) -> tuple[dict[str, Tensor], Position]:
    """Return what `save` wrote.

    Raises:
        BadPlace: there is no checkpoint.
    """
    # A run that was killed between two renames has its last good state under the old name.
    found = next(
        (one for one in (folder, folder.with_name(folder.name + ".old")) if one.is_dir()), None
    )
    if found is None:
        raise BadPlace(
            f"there is no checkpoint in {folder.parent}; leave out --resume to begin one"
        )
    values = json.loads((found / "state.json").read_text("utf-8"))
    return load_file(found / "state.safetensors"), Position(**values)

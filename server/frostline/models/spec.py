"""A model described by what it can do, not by its name. Read from `frostline.json` in its folder.

Loads no torch: what is wrong with a folder at first sight is said at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from frostline.config import EMBEDDED
from frostline.errors import ModelUnusable


class Noise(msgspec.Struct, frozen=True):
    """What stands in a slot before anything is known: the mask token, or any token at all."""

    kind: Literal["mask", "uniform"]
    id: int = -1


class Length(msgspec.Struct, frozen=True):
    """How the model says where a text ends."""

    kind: Literal["fixed", "end_pad", "expand_delete"]
    id: int = -1


class ModelSpec(msgspec.Struct, frozen=True):
    """What a model is able to do.

    Attributes:
        shift: 1 when token i is read from the output at i - 1.
        attention: "full" sees both sides of a hole.
        max_context: tokens that it was trained to see at once.
        banned: tokens that are never part of a text.
        begin_of_file: the token that stands before a file's first one, and only there.
        trained_on: language that it knows, empty for no claim.
        instruction: whether it follows instructions.
    """

    name: str
    noise: Noise
    shift: Literal[0, 1]
    attention: Literal["full", "block", "prefix_canvas", "causal"]
    length: Length
    max_context: Annotated[int, msgspec.Meta(ge=64)]
    self_conditioning: bool = False
    edits_unmasked: bool = False
    banned: tuple[int, ...] = ()
    begin_of_file: int | None = None
    trained_on: str = ""
    instruction: bool = False

    @property
    def pad(self) -> int | None:
        """The token that fills a gap behind its text, or None."""
        return self.length.id if self.length.kind == "end_pad" else None


def folder_of(name: str) -> Path:
    """Return the folder of the model called `name`: "embedded", or a path.

    Raises:
        ModelUnusable: there is no such folder.
    """
    folder = Path(__file__).with_name("embedded") if name == EMBEDDED else Path(name).expanduser()
    if not folder.is_dir():
        raise ModelUnusable(
            f"there is no model {name!r}; use {EMBEDDED!r} or the path of a folder with "
            "config.json, tokenizer.json, frostline.json and model.safetensors"
        )
    return folder


def read(folder: Path) -> ModelSpec:
    """Return the spec of the model in `folder`.

    Raises:
        ModelUnusable: there is none, or it is not one.
    """
    path = folder / "frostline.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=ModelSpec)
    except OSError as error:
        raise ModelUnusable(
            f"{folder} has no frostline.json, so it is not known how to run it; "
            "point `model` at a folder that has one"
        ) from error
    except msgspec.MsgspecError as error:
        raise ModelUnusable(f"{path} does not describe a model: {error}") from error

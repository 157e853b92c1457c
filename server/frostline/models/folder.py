"""A model's name to its folder, and a folder to what the model can do.

`frostline.json` says it where there is one; without one it is read from the files that the makers
published. Loads no torch: what is wrong with a folder at first sight is said at once.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from frostline.config import EMBEDDED, model_path
from frostline.errors import ModelUnusable
from frostline.models import families
from frostline.models.published import Published
from frostline.models.spec import ModelSpec


def folder_of(name: str) -> Path:
    """Return the folder of the model called `name`: "embedded", one that was pulled, or a path.

    Raises:
        ModelUnusable: there is no such folder.
    """
    if name == EMBEDDED:
        return Path(__file__).with_name("embedded")
    folder = Path(model_path(name))
    if not folder.is_dir():
        raise ModelUnusable(
            f"there is no model {name!r}; use {EMBEDDED!r}, the name of one that was pulled "
            "(`frostline models pull OWNER/NAME`), or the path of a folder with config.json, "
            "tokenizer.json and model.safetensors"
        )
    return folder


def read(folder: Path) -> ModelSpec:
    """Return the spec of the model in `folder`.

    Raises:
        ModelUnusable: there is none, or it is not one.
    """
    path = folder / "frostline.json"
    if not path.is_file():
        published = Published(folder)
        return families.of(published).spec(published)
    try:
        return msgspec.json.decode(path.read_bytes(), type=ModelSpec)
    except OSError as error:
        raise ModelUnusable(f"{path} cannot be read: {error}") from error
    except msgspec.MsgspecError as error:
        raise ModelUnusable(f"{path} does not describe a model: {error}") from error

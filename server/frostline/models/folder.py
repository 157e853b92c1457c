"""A model's name to its folder, and a folder to what the model can do.

`frostline.json` says it where there is one; without one it is read from the files that the makers
published. Loads no torch: what is wrong with a folder at first sight is said at once.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from frostline.config import EMBEDDED, model_path
from frostline.errors import ModelUnusable
from frostline.models import families, gguf, gguf_said
from frostline.models.published import Published
from frostline.models.spec import ModelSpec


def folder_of(name: str) -> Path:
    """Return where the model called `name` is: a folder, or a GGUF file.

    Args:
        name: "embedded", a pulled model's, or a path; of a folder that holds one GGUF file and no config.json, that file.

    Raises:
        ModelUnusable: there is no such folder.
    """
    if name == EMBEDDED:
        return Path(__file__).with_name("embedded")
    found = Path(model_path(name))
    if found.is_file() and found.suffix == ".gguf":
        return found
    if not found.is_dir():
        raise ModelUnusable(
            f"there is no model {name!r}; use {EMBEDDED!r}, the name of one that was pulled "
            "(`frostline models pull OWNER/NAME`), the path of a folder with config.json, "
            "tokenizer.json and model.safetensors, or a GGUF file"
        )
    files = sorted(found.glob("*.gguf"))
    if len(files) == 1 and not (found / "config.json").exists():
        return files[0]
    return found


def read(folder: Path) -> ModelSpec:
    """Return the spec of the model in `folder`, which may be a GGUF file.

    Raises:
        ModelUnusable: there is none, or it is not one.
    """
    if folder.is_file():
        return gguf_said.spec(gguf.read(folder))
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

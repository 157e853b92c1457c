"""What the JSON files of a checkpoint's folder say, as its makers published them.

Every special id is read from here, none is known beforehand: a fine-tune may have moved it. Loads no
torch and no tokenizer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from frostline.errors import ModelUnusable


@dataclass(frozen=True)
class Published:
    """The folder of a checkpoint."""

    folder: Path

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.json.

        Raises:
            ModelUnusable: it is missing, or it is no JSON object.
        """
        return read_object(self.folder / "config.json", "it is no model folder")

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type"))

    @property
    def architecture(self) -> str:
        """The class that the weights were saved from; empty where none is named."""
        named = self.config.get("architectures")
        return str(named[0]) if isinstance(named, list) and named else ""

    @property
    def remote_code(self) -> bool:
        """Whether it wants code from its own repository to be run. It never is."""
        return bool(self.config.get("auto_map"))

    @cached_property
    def name(self) -> str:
        """What the checkpoint is called, as far as it says."""
        named = str(self.config.get("_name_or_path") or "")
        return named.rstrip("/").rpartition("/")[2] or self.folder.resolve().name

    @cached_property
    def generation(self) -> dict[str, Any]:
        """generation_config.json, empty without one."""
        return self._optional("generation_config.json")

    @cached_property
    def tokenizer(self) -> dict[str, Any]:
        """tokenizer_config.json, empty without one."""
        return self._optional("tokenizer_config.json")

    @cached_property
    def added(self) -> dict[str, tuple[int, bool]]:
        """Each token that was added to the vocabulary: its id, and whether it is a mark and no text."""
        found: dict[str, tuple[int, bool]] = {}
        for text, one in self._optional("added_tokens.json").items():
            if isinstance(one, int):
                found[text] = one, True
        listed = self._optional("tokenizer.json").get("added_tokens")
        decoder = self.tokenizer.get("added_tokens_decoder")
        told: list[tuple[Any, Any]] = list(decoder.items()) if isinstance(decoder, dict) else []
        told += [(one.get("id"), one) for one in listed or () if isinstance(one, dict)]
        for one, token in told:
            if str(one).isdigit() and isinstance(token, dict):
                found[str(token.get("content"))] = int(one), bool(token.get("special", True))
        return found

    @property
    def special(self) -> dict[str, int]:
        """The id of each added token."""
        return {text: one for text, (one, _) in self.added.items()}

    def marked(self, role: str) -> int | None:
        """Return the id of the token with this role ("mask_token", "eos_token"), or None."""
        for source in (self.tokenizer, self._optional("special_tokens_map.json")):
            token = source.get(role)
            text = token.get("content") if isinstance(token, dict) else token
            if isinstance(text, str) and text in self.special:
                return self.special[text]
        return None

    def id_of(self, key: str) -> int | None:
        """Return the id (the first of several) that config.json has under `key`, or None."""
        value = self.config.get(key)
        if isinstance(value, list) and value:
            value = value[0]
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def mask(self) -> int:
        """Return the mask token's id: what config.json says, else the tokenizer's mask token.

        Raises:
            ModelUnusable: neither names one, or they name different ones.
        """
        configured, marked = self.id_of("mask_token_id"), self.marked("mask_token")
        if configured is not None and marked is not None and configured != marked:
            raise ModelUnusable(
                f"{self.name}: config.json says that {configured} is the mask token and the tokenizer "
                f"that it is {marked}; fetch the model again, or put a frostline.json beside it"
            )
        found = marked if configured is None else configured
        if found is None:
            raise ModelUnusable(
                f"{self.name} names no mask token, neither in config.json nor in its tokenizer; "
                "put a frostline.json with its id beside it"
            )
        return found

    def _optional(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        return read_object(path, "") if path.is_file() else {}


def read_object(path: Path, without: str) -> dict[str, Any]:
    """Return the JSON object in `path`.

    Args:
        without: what a folder without the file is, for the sentence that says so.

    Raises:
        ModelUnusable: there is no file, or it holds something else.
    """
    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelUnusable(f"{path.parent} has no {path.name}; {without}") from error
    except ValueError as error:
        raise ModelUnusable(f"{path} is not valid JSON: {error}") from error
    if not isinstance(values, dict):
        raise ModelUnusable(f"{path} is not valid: it holds no JSON object")
    return values

"""What one family of checkpoints is: how it is recognised, run and described."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from frostline.errors import ModelUnusable
from frostline.models.published import Published
from frostline.models.spec import ModelSpec

Config = dict[str, Any]


def _as_it_is(given: Any) -> Any:
    return given


@dataclass(frozen=True, slots=True)
class Family:
    """One family.

    Attributes:
        model_type: what config.json calls it.
        base: transformers' own model type that computes it.
        recognises: whether a checkpoint is one.
        spec: what a checkpoint can do, for one without a frostline.json.
        config: config.json in the words of `base`.
        tensor: a tensor's published name to its name in `base`.
        left_out: beginnings of names in `base` of parts that are not loaded.
        tied: a name in `base` to the one whose tensor stands there too, where it has none of its own.
    """

    model_type: str
    base: str
    recognises: Callable[[Published], bool]
    spec: Callable[[Published], ModelSpec]
    config: Callable[[Config], Config] = _as_it_is
    tensor: Callable[[str], str] = _as_it_is
    left_out: tuple[str, ...] = ()
    tied: Callable[[str], str] = _as_it_is


def only(config: Mapping[str, Any], name: str, **fixed: Any) -> None:
    """Check that `config` has what the family is known to be run with, where it says anything.

    Raises:
        ModelUnusable: a value is another, so that the model would be computed wrongly.
    """
    for key, value in fixed.items():
        if config.get(key, value) not in (value, None):
            raise ModelUnusable(
                f"this {name} checkpoint has {key} = {config[key]!r} and only {value!r} can be run"
            )


def end_of_text(published: Published) -> int | None:
    """Return the token that ends a text, or None: the tokenizer's, else that of config.json."""
    marked = published.marked("eos_token")
    return published.id_of("eos_token_id") if marked is None else marked


def begin(published: Published) -> int | None:
    """Return the token that a text begins with, or None where the tokenizer puts none."""
    return published.marked("bos_token")


def marks(published: Published, *kept: int | None) -> tuple[int, ...]:
    """Return the tokens that are marks and no text, save those in `kept`."""
    found = {one for one, mark in published.added.values() if mark}
    return tuple(sorted(found - set(kept)))


def context(
    config: Mapping[str, Any], key: str = "max_position_embeddings", most: int = 8192
) -> int:
    """Return how many tokens the model sees at once: what config.json says, `most` at most."""
    value = config.get(key)
    return max(64, min(int(value), most)) if isinstance(value, int) else 2048

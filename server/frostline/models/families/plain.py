"""Plain `qwen2`, `llama` and such folders: their config does not say how they denoise, if they do.

A frostline.json beside it does: this is how the embedded model and its kin are run.
"""

from __future__ import annotations

from frostline.errors import ModelUnusable
from frostline.models.families import fill_in
from frostline.models.families.family import Family
from frostline.models.published import Published
from frostline.models.spec import ModelSpec


def spec(published: Published) -> ModelSpec:
    """Raise ModelUnusable: nothing is known of what such a model can do."""
    raise ModelUnusable(
        f"{published.folder} has no frostline.json that says how it denoises, and its tokenizer has no "
        "fill-in-the-middle tokens; point `model` at one that was trained to denoise, or to fill in "
        "such as Qwen2.5-Coder"
    )


def _family(kind: str) -> Family:
    return Family(kind, kind, lambda published: published.model_type == kind, spec)


FAMILIES = tuple(_family(kind) for kind in fill_in.KINDS)

"""Plain `qwen2`, `qwen3` and `llama` folders: their config does not say how they denoise, if they do.

A frostline.json beside it does: this is how the embedded model and its kin are run.
"""

from __future__ import annotations

from frostline.errors import ModelUnusable
from frostline.models.families.family import Family
from frostline.models.published import Published
from frostline.models.spec import ModelSpec


def spec(published: Published) -> ModelSpec:
    """Raise ModelUnusable: nothing is known of what such a model can do."""
    raise ModelUnusable(
        f"{published.folder} has no frostline.json, and a {published.model_type} model does not say "
        "otherwise how it denoises; point `model` at a folder that has one"
    )


def _family(kind: str) -> Family:
    return Family(kind, kind, lambda published: published.model_type == kind, spec)


FAMILIES = tuple(_family(kind) for kind in ("qwen2", "qwen3", "llama"))

"""Qwen2.5-Coder, StarCoder2, CodeGemma, DeepSeek-Coder and their kin: they read left to right, and fill in.

Their config.json says nothing of that; the special tokens that their tokenizer names do (`fim.py`).
Models that grew from these have such tokens too, and are recognised by what else they have, before.
"""

from __future__ import annotations

from frostline.models import fim
from frostline.models.families.family import Family, context, marks
from frostline.models.published import Published
from frostline.models.spec import ModelSpec

KINDS = ("qwen2", "qwen3", "llama", "starcoder2", "gemma")


def spec(published: Published) -> ModelSpec:
    """Return what such a checkpoint can do."""
    seen = context(published.config)
    window = published.config.get("sliding_window")
    if isinstance(window, int) and published.config.get("use_sliding_window", True):
        # Up to its width a window that slides is all of the text.
        seen = min(seen, window)
    return fim.spec(published.name, fim.asked(published), marks(published), seen)


def _family(kind: str) -> Family:
    def recognises(published: Published) -> bool:
        return published.model_type == kind and fim.fills_in(published.special)

    return Family(kind, kind, recognises, spec)


FAMILIES = tuple(_family(kind) for kind in KINDS)

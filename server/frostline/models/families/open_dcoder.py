"""Open-dCoder: Qwen2.5-Coder trained to denoise, with the shift kept. Published as plain `qwen2`.

What tells it from the model that it grew from is the mask token that its tokenizer was given.
"""

from __future__ import annotations

from frostline.models.families.family import Family, begin, context, marks
from frostline.models.published import Published
from frostline.models.spec import Length, ModelSpec, Noise


def recognises(published: Published) -> bool:
    """Return whether a checkpoint is one."""
    return published.model_type == "qwen2" and published.marked("mask_token") is not None


def spec(published: Published) -> ModelSpec:
    """Return what an Open-dCoder checkpoint can do."""
    return ModelSpec(
        name=published.name,
        noise=Noise("mask", published.mask()),
        shift=1,
        attention="full",
        length=Length("fixed"),
        max_context=context(published.config, most=4096),
        banned=marks(published),
        begin_of_file=begin(published),
    )


FAMILY = Family("qwen2", "qwen2", recognises, spec)

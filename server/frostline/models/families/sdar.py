"""SDAR (`sdar`): Qwen3 layers, blocks of 4 (or what the checkpoint says) behind each other, no shift."""

from __future__ import annotations

from frostline.errors import ModelUnusable
from frostline.models.families.family import Config, Family, context, end_of_text, marks
from frostline.models.published import Published
from frostline.models.spec import Length, ModelSpec, Noise, Quote


def spec(published: Published) -> ModelSpec:
    """Return what an SDAR checkpoint can do.

    Raises:
        ModelUnusable: it does not say how long its blocks are, or how a text ends.
    """
    block, end = published.id_of("block_size"), end_of_text(published)
    if block is None or end is None:
        raise ModelUnusable(
            f"{published.name} does not say in config.json what its block_size and its end of text are"
        )
    return ModelSpec(
        name=published.name,
        noise=Noise("mask", published.mask()),
        shift=0,
        attention="block",
        block=block,
        length=Length("end_pad", end),
        max_context=context(published.config, most=4096),
        banned=marks(published, end),
        quote=Quote(),
    )


def config(values: Config) -> Config:
    """Return config.json in Qwen3's words."""
    return {**values, "model_type": "qwen3", "sliding_window": None, "use_sliding_window": False}


FAMILY = Family(
    model_type="sdar",
    base="qwen3",
    recognises=lambda published: published.model_type == "sdar",
    spec=spec,
    config=config,
)

"""Dream, Dream-Coder, DiffuCoder and DreamOn (all `Dream`): Qwen2 layers that see both sides.

A token is read from the output before it, a habit of the autoregressive weights they grew from.
DreamOn's tokenizer has an expand token as well, and it deletes with its end of text.
"""

from __future__ import annotations

from frostline.models.families.family import (
    Config,
    Family,
    begin,
    context,
    end_of_text,
    marks,
    only,
)
from frostline.models.published import Published
from frostline.models.spec import Length, ModelSpec, Noise

EXPAND = "<|expand|>"


def spec(published: Published) -> ModelSpec:
    """Return what a Dream checkpoint can do."""
    mask = published.mask()
    return ModelSpec(
        name=published.name,
        noise=Noise("mask", mask),
        shift=1,
        attention="full",
        length=length(published),
        # Dream was trained on 2,048 tokens whatever its positions reach to.
        max_context=context(published.config, most=2048),
        banned=marks(published),
        begin_of_file=begin(published),
    )


def length(published: Published) -> Length:
    """Return how the checkpoint says how long a text is."""
    expand = published.id_of("expand_token_id")
    expand = published.special.get(EXPAND) if expand is None else expand
    delete = end_of_text(published)
    if expand is None or delete is None:
        return Length("fixed")
    return Length("expand_delete", expand, delete)


def config(values: Config) -> Config:
    """Return config.json in Qwen2's words."""
    only(values, "Dream", use_sliding_window=False)
    return {**values, "sliding_window": None}


FAMILY = Family(
    model_type="Dream",
    base="qwen2",
    recognises=lambda published: published.model_type == "Dream",
    spec=spec,
    config=config,
)

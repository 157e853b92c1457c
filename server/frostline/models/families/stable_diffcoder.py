"""Stable-DiffCoder: Seed-Coder (plain `llama`) in blocks of 4 behind each other, no shift.

config.json says `llama`; what tells it from Seed-Coder is the class that its auto_map names. That
class adds a way of sampling to Llama and no computation, so Llama is all there is to run. The length
of its blocks stands in that code only. Seed-Coder was trained to fill in the middle with the suffix
in front, and has tokens for it.
"""

from __future__ import annotations

from frostline.models.families.family import Family, begin, context, end_of_text, marks
from frostline.models.published import Published
from frostline.models.spec import Length, ModelSpec, Noise, Quote

BLOCK = 4
SUFFIX, PREFIX, MIDDLE = "<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"


def spec(published: Published) -> ModelSpec:
    """Return what a Stable-DiffCoder checkpoint can do."""
    end = end_of_text(published)
    return ModelSpec(
        name=published.name,
        noise=Noise("mask", published.mask()),
        shift=0,
        attention="block",
        block=published.id_of("block_size") or BLOCK,
        length=Length("fixed") if end is None else Length("end_pad", end),
        max_context=context(published.config, most=8192),
        banned=marks(published, end),
        begin_of_file=begin(published),
        quote=_quote(published),
    )


def _quote(published: Published) -> Quote:
    """Return the tokens around the quoted suffix and the prefix, none where there are none."""
    found = [published.special.get(text) for text in (SUFFIX, PREFIX, MIDDLE)]
    if None in found:
        return Quote()
    suffix, prefix, middle = ((one,) for one in found if one is not None)
    return Quote(suffix, prefix, middle)


FAMILY = Family(
    model_type="llama (Stable-DiffCoder)",
    base="llama",
    recognises=lambda published: (
        published.model_type == "llama" and published.architecture == "StableDiffcoderForCausalLM"
    ),
    spec=spec,
)

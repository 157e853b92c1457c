"""dLLM's tiny-A2D (`a2d-qwen2`, `a2d-qwen3`, `a2d-llama`): an autoregressive model made to denoise.

Qwen2, Qwen3 or Llama as they are, without shift. The "mdlm" ones see both sides; the "bd3lm" ones
see blocks of 32 behind each other, which their config does not say: only their name does.
"""

from __future__ import annotations

from frostline.models.families.family import Config, Family, begin, context, end_of_text, marks
from frostline.models.published import Published
from frostline.models.spec import Length, ModelSpec, Noise

BLOCK = 32


def spec(published: Published) -> ModelSpec:
    """Return what a tiny-A2D checkpoint can do."""
    block = published.id_of("block_size") or (BLOCK if "bd3lm" in published.name else 0)
    end = end_of_text(published)
    return ModelSpec(
        name=published.name,
        noise=Noise("mask", published.mask()),
        shift=0,
        attention="block" if block else "full",
        block=block,
        length=Length("end_pad", end) if block and end is not None else Length("fixed"),
        # Trained on 1,024 tokens at most.
        max_context=context(published.config, most=1024),
        banned=marks(published, end if block else None),
        begin_of_file=begin(published),
    )


def _family(base: str) -> Family:
    kind = f"a2d-{base}"

    def config(values: Config) -> Config:
        return {**values, "model_type": base}

    return Family(kind, base, lambda published: published.model_type == kind, spec, config)


FAMILIES = tuple(_family(base) for base in ("qwen2", "qwen3", "llama"))

"""The families of published checkpoints, one file of quirks each.

A family recognises a checkpoint by its config.json, says how config and tensor names map onto a
class of transformers' own, and what the model can do. Nothing in a checkpoint is executed: what no
family recognises is refused, also when its `auto_map` offers code. Loads no torch.
"""

from __future__ import annotations

from frostline.errors import ModelUnusable
from frostline.models.families import (
    a2d,
    diffusion_gemma,
    dream,
    fill_in,
    llada,
    llada_moe,
    open_dcoder,
    plain,
    sdar,
    stable_diffcoder,
)
from frostline.models.families.family import Family
from frostline.models.published import Published

# The first that recognises a checkpoint has it.
FAMILIES: tuple[Family, ...] = (
    dream.FAMILY,
    llada_moe.FAMILY,
    llada.FAMILY,
    *a2d.FAMILIES,
    sdar.FAMILY,
    stable_diffcoder.FAMILY,
    open_dcoder.FAMILY,
    diffusion_gemma.FAMILY,
    *fill_in.FAMILIES,
    *plain.FAMILIES,
)


def of(published: Published) -> Family:
    """Return the family of a checkpoint.

    Raises:
        ModelUnusable: no family recognises it.
    """
    for family in FAMILIES:
        if family.recognises(published):
            return family
    known = ", ".join(sorted({family.model_type for family in FAMILIES}))
    why = (
        "; its auto_map names code of its own to run it with, and such code is never run"
        if published.remote_code
        else ""
    )
    raise ModelUnusable(
        f"models of type {published.config.get('model_type')!r} cannot be run{why}; these can: {known}"
    )

"""LLaDA-MoE: Qwen3-MoE layers whose router's weights are left as they are, both sides seen, no shift.

Published as `llada` with an architecture and experts of its own; dLLM's copies say `lladamoe`.
"""

from __future__ import annotations

from frostline.errors import ModelUnusable
from frostline.models.families.family import Config, Family, begin, context, marks, only
from frostline.models.published import Published
from frostline.models.spec import Length, ModelSpec, Noise


def recognises(published: Published) -> bool:
    """Return whether a checkpoint is one."""
    kind = published.model_type
    return kind == "lladamoe" or (kind == "llada" and "num_experts" in published.config)


def spec(published: Published) -> ModelSpec:
    """Return what a LLaDA-MoE checkpoint can do."""
    return ModelSpec(
        name=published.name,
        noise=Noise("mask", published.mask()),
        shift=0,
        attention="full",
        length=Length("fixed"),
        max_context=context(published.config, most=4096),
        banned=marks(published),
        begin_of_file=begin(published),
    )


def config(values: Config) -> Config:
    """Return config.json in Qwen3-MoE's words.

    Raises:
        ModelUnusable: it has parts that Qwen3-MoE has not.
    """
    only(
        values,
        "LLaDA-MoE",
        qk_layernorm=True,
        shared_expert_intermediate_size=None,
        moe_router_enable_expert_bias=False,
        moe_router_score_function="softmax",
        routed_scaling_factor=1,
        partial_rotary_factor=1,
        clip_qkv=None,
    )
    frequency = values.get("moe_layer_freq") or [1] * values["num_hidden_layers"]
    if len(frequency) != values["num_hidden_layers"]:
        raise ModelUnusable(
            "this LLaDA-MoE checkpoint does not say of each layer whether it has experts"
        )
    return {
        **values,
        "model_type": "qwen3_moe",
        "head_dim": values["hidden_size"] // values["num_attention_heads"],
        "intermediate_size": values.get("dense_intermediate_size") or values["hidden_size"],
        "moe_intermediate_size": values["expert_intermediate_size"],
        "mlp_only_layers": [layer for layer, has in enumerate(frequency) if not has],
        "decoder_sparse_step": 1,
        # The makers' code never normalises, whatever its config says.
        "norm_topk_prob": False,
    }


FAMILY = Family(
    model_type="lladamoe",
    base="qwen3_moe",
    recognises=recognises,
    spec=spec,
    config=config,
)

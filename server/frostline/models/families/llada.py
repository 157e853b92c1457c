"""LLaDA 8B, LLaDA 1.5 and iLLaDA (`llada`): Llama layers under OLMo's names, both sides seen, no shift."""

from __future__ import annotations

import re

from frostline.models.families.family import Config, Family, begin, context, marks, only
from frostline.models.published import Published
from frostline.models.spec import Length, ModelSpec, Noise

_LAYER = re.compile(r"model\.transformer\.blocks\.(\d+)\.(\w+)\.(\w+)")
_PARTS = {
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj",
    "ff_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "ff_out": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ff_norm": "post_attention_layernorm",
}
_OUTSIDE = {
    "model.transformer.wte.weight": "model.embed_tokens.weight",
    "model.transformer.ln_f.weight": "model.norm.weight",
    "model.transformer.ff_out.weight": "lm_head.weight",
}


def spec(published: Published) -> ModelSpec:
    """Return what a LLaDA checkpoint can do."""
    return ModelSpec(
        name=published.name,
        noise=Noise("mask", published.mask()),
        shift=0,
        attention="full",
        length=Length("fixed"),
        max_context=context(published.config, "max_sequence_length", most=4096),
        banned=marks(published),
        begin_of_file=begin(published),
    )


def config(values: Config) -> Config:
    """Return config.json in Llama's words.

    Raises:
        ModelUnusable: it is built in one of the ways that LLaDA's code has and no LLaDA uses.
    """
    only(
        values,
        "LLaDA",
        block_type="llama",
        block_group_size=1,
        activation_type="silu",
        layer_norm_type="rms",
        rope=True,
        alibi=False,
        attention_layer_norm=False,
        input_emb_norm=False,
        scale_logits=False,
        include_bias=False,
        multi_query_attention=None,
        clip_qkv=None,
    )
    return {
        "model_type": "llama",
        "vocab_size": values.get("embedding_size") or values["vocab_size"],
        "hidden_size": values["d_model"],
        "num_hidden_layers": values["n_layers"],
        "num_attention_heads": values["n_heads"],
        "num_key_value_heads": values.get("n_kv_heads") or values["n_heads"],
        "intermediate_size": values["mlp_hidden_size"],
        "max_position_embeddings": values["max_sequence_length"],
        "rms_norm_eps": values.get("rms_norm_eps", 1e-5),
        "rope_theta": values.get("rope_theta", 10000.0),
        "tie_word_embeddings": bool(values.get("weight_tying")),
        "attention_bias": bool(values.get("include_qkv_bias")),
    }


def tensor(name: str) -> str:
    """Return a tensor's name in Llama."""
    if found := _LAYER.fullmatch(name):
        number, part, kind = found.groups()
        return f"model.layers.{number}.{_PARTS.get(part, part)}.{kind}"
    return _OUTSIDE.get(name, name)


FAMILY = Family(
    model_type="llada",
    base="llama",
    recognises=lambda published: published.model_type == "llada",
    spec=spec,
    config=config,
    tensor=tensor,
)

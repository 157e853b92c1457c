"""DiffusionGemma (`diffusion_gemma`): Gemma 4 with experts, a causal encoder and a canvas behind it.

The encoder reads what is before a hole once; the decoder, on the same weights, sees that and the whole
canvas. Noise is any token of the vocabulary, and each look is told what the one before came to. The
published folder has a part for pictures as well. Text is all that is given to it here, so that part is
neither read nor counted.
"""

from __future__ import annotations

from typing import Any

from frostline.errors import ModelUnusable
from frostline.models.families.family import Config, Family, begin, context, marks, only
from frostline.models.published import Published
from frostline.models.spec import Chat, Length, ModelSpec, Noise, Sampler

PICTURES = ("model.encoder.vision_tower.", "model.encoder.embed_vision.")
ENCODER, DECODER = "model.encoder.language_model.", "model.decoder."
SAMPLER = "EntropyBoundSamplerConfig"
TURN, TURN_END = "<|turn>", "<turn|>"
THOUGHT, THOUGHT_END = "<|channel>", "<channel|>"


def spec(published: Published) -> ModelSpec:
    """Return what a DiffusionGemma checkpoint can do.

    Raises:
        ModelUnusable: it does not say how long its canvas is, or it is sampled in another way.
    """
    canvas = published.id_of("canvas_length")
    if canvas is None:
        raise ModelUnusable(
            f"{published.name} does not say in config.json what its canvas_length is"
        )
    chat = _chat(published)
    return ModelSpec(
        name=published.name,
        noise=Noise("uniform"),
        shift=0,
        attention="prefix_canvas",
        block=canvas,
        length=Length("fixed"),
        max_context=context(_text(published.config)),
        sampler=_sampler(published),
        self_conditioning=True,
        edits_unmasked=True,
        banned=marks(published),
        begin_of_file=begin(published),
        instruction=chat is not None,
        chat=chat,
    )


def _text(values: Config) -> Config:
    text = values.get("text_config")
    return text if isinstance(text, dict) else {}


def _sampler(published: Published) -> Sampler:
    """Return what generation_config.json says, with transformers' own values where it says nothing."""
    said, usual = published.generation, Sampler()
    bound = said.get("sampler_config") or {}
    if bound.get("_cls_name", SAMPLER) != SAMPLER:
        raise ModelUnusable(
            f"{published.name} is sampled by a {bound['_cls_name']}, and only an entropy bound is known; "
            "put a frostline.json with a `sampler` beside it"
        )

    def value(name: str, otherwise: Any) -> Any:
        found = said.get(name)
        return otherwise if found is None else found

    return Sampler(
        steps=value("max_denoising_steps", usual.steps),
        t_min=value("t_min", usual.t_min),
        t_max=value("t_max", usual.t_max),
        entropy_bound=bound.get("entropy_bound", usual.entropy_bound),
        stability=value("stability_threshold", usual.stability),
        confidence=value("confidence_threshold", usual.confidence),
    )


def _chat(published: Published) -> Chat | None:
    """Return the tokens around a turn, or None where the tokenizer has none."""
    turn, end = published.special.get(TURN), published.special.get(TURN_END)
    if turn is None or end is None:
        return None
    # Told to think of nothing, its larger kin write an empty thought first. It is written for them.
    thought, thought_end = published.special.get(THOUGHT), published.special.get(THOUGHT_END)
    if thought is None or thought_end is None:
        return Chat(turn, end)
    return Chat(turn, end, (thought, thought_end))


def config(values: Config) -> Config:
    """Return config.json with the smallest part for pictures that there can be.

    Raises:
        ModelUnusable: encoder and decoder are not on the same weights, or the encoder is not causal.
    """
    only(values, "DiffusionGemma", tie_word_embeddings=True)
    if (_text(values)).get("use_bidirectional_attention") == "all":
        raise ModelUnusable("this DiffusionGemma checkpoint has an encoder that sees both sides")
    return {**values, "vision_config": {"model_type": "gemma4_vision", "num_hidden_layers": 1}}


def tied(name: str) -> str:
    """Return the tensor that stands for one that the checkpoint does not repeat."""
    if name == "lm_head.weight":
        return f"{DECODER}embed_tokens.weight"
    return name.replace(ENCODER, DECODER, 1) if name.startswith(ENCODER) else name


FAMILY = Family(
    model_type="diffusion_gemma",
    base="diffusion_gemma",
    recognises=lambda published: published.model_type == "diffusion_gemma",
    spec=spec,
    config=config,
    left_out=PICTURES,
    tied=tied,
)

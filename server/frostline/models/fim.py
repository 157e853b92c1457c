"""How a fill-in-the-middle model is asked, read off its tokenizer's special tokens.

All of these models were trained on text before, text behind, then the text between (PSM): they see
the text behind a hole as a quotation in front of it. A tokenizer names its own special tokens; one
that has none of these sets belongs to a model that cannot fill in, and it is refused. The sets are
those of the makers' model cards. Loads no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frostline.errors import ModelUnusable
from frostline.models.published import Published
from frostline.models.spec import Length, ModelSpec, Noise

# Special tokens before the text in front, before the text behind, and before the text between.
_SETS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen2.5-Coder, CodeGemma
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, StarCoder2
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # DeepSeek-Coder
)
# What such models write when a text is over, besides their configured end: the file ends or
# another begins.
_ENDS = (
    "<|endoftext|>",
    "<|fim_pad|>",
    "<|file_sep|>",
    "<|file_separator|>",
    "<|repo_name|>",
    "<fim_pad>",
    "<file_sep>",
    "<repo_name>",
    "<｜end▁of▁sentence｜>",
)
# Slots for the special tokens of a prompt.
_FRAME = 4


@dataclass(frozen=True, slots=True)
class Fim:
    """The special tokens of a fill-in-the-middle prompt.

    Attributes:
        begin: what every text of this model begins with; often nothing.
        prefix, suffix, middle: before the text in front, the text behind, the text between.
        ends: each of them says that the text between is over; the first is the configured one.
    """

    begin: tuple[int, ...]
    prefix: int
    suffix: int
    middle: int
    ends: tuple[int, ...]

    def prompt(self, before: list[int], behind: list[int]) -> list[int]:
        """Return the tokens after which the text between follows."""
        return [*self.begin, self.prefix, *before, self.suffix, *behind, self.middle]


def fills_in(special: Mapping[str, int]) -> bool:
    """Return True if a tokenizer that names these special tokens has a set for filling in."""
    return any(all(name in special for name in names) for names in _SETS)


def found(special: Mapping[str, int], ends: Iterable[int], begin: Iterable[int], path: Path) -> Fim:
    """Return how the model at `path` is asked.

    Args:
        special: id of each special token that its tokenizer names.
        ends: the ids with which it ends a text by its configuration.
        begin: the ids that its tokenizer puts before every text.

    Raises:
        ModelUnusable: its tokenizer names no tokens for filling in.
    """
    for names in _SETS:
        if all(name in special for name in names):
            prefix, suffix, middle = (special[name] for name in names)
            named = [special[name] for name in _ENDS if name in special]
            return Fim(
                tuple(begin),
                prefix,
                suffix,
                middle,
                tuple(dict.fromkeys([*ends, *named, prefix, suffix, middle])),
            )
    raise ModelUnusable(
        f"the tokenizer of {path} has no fill-in-the-middle tokens, so this model cannot see what "
        "follows a hole; choose one that was trained to fill in, such as Qwen2.5-Coder"
    )


def asked(published: Published) -> Fim:
    """Return how a published checkpoint is asked.

    Raises:
        ModelUnusable: its tokenizer names no tokens for filling in.
    """
    ends = [
        *_listed(published.generation.get("eos_token_id")),
        *_listed(published.config.get("eos_token_id")),
        *_listed(published.marked("eos_token")),
    ]
    wanted = published.tokenizer.get("add_bos_token") is True
    begin = _listed(published.marked("bos_token")) if wanted else []
    return found(published.special, ends, begin, published.folder)


def spec(name: str, fim: Fim, marks: Iterable[int], max_context: int) -> ModelSpec:
    """Return what a fill-in-the-middle model called `name` is able to do.

    Its end of a text is its pad: what stands behind it in a gap is no text.

    Args:
        marks: the ids of special tokens, which are no text.
        max_context: tokens that it sees at once, those around the text included.
    """
    end = fim.ends[0]
    return ModelSpec(
        name=name,
        noise=Noise("mask", end),
        shift=1,
        attention="causal",
        length=Length("end_pad", end),
        max_context=max_context - len(fim.begin) - _FRAME,
        banned=tuple(sorted({*marks, *fim.ends} - {end})),
    )


def _listed(value: Any) -> list[int]:
    """Return the ids in a value that is one or a list of them; true and false are none."""
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, int) and not isinstance(one, bool)]

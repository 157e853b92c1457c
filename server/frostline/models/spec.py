"""A model described by what it can do, not by its name."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec


class Noise(msgspec.Struct, frozen=True):
    """What stands in a slot before anything is known: the mask token, or any token at all."""

    kind: Literal["mask", "uniform"]
    id: int = -1


class Length(msgspec.Struct, frozen=True):
    """How the model says where a text ends.

    Attributes:
        id: "end_pad": what fills a gap behind its text. "expand_delete": one slot that becomes two.
        delete: "expand_delete": a slot that goes.
    """

    kind: Literal["fixed", "end_pad", "expand_delete"]
    id: int = -1
    delete: int = -1


class Quote(msgspec.Struct, frozen=True):
    """Tokens around text that is put in front of a window: the suffix, then the prefix, then the hole.

    All three empty is the plain form: the suffix, an empty line, the prefix.
    """

    suffix: tuple[int, ...] = ()
    prefix: tuple[int, ...] = ()
    middle: tuple[int, ...] = ()


class Chat(msgspec.Struct, frozen=True):
    """Tokens around the turns of a talk, for a model that follows instructions.

    Attributes:
        turn, end: around a turn, which begins with who speaks.
        thought: around what the model thinks before it answers; None where it does not.
    """

    turn: int
    end: int
    thought: tuple[int, int] | None = None


class Sampler(msgspec.Struct, frozen=True):
    """How a model with uniform noise is denoised, as its checkpoint says (DiffusionGemma's names).

    Attributes:
        steps: at most.
        t_min, t_max: temperature of the last step and before the first.
        entropy_bound: nats; the surest tokens are taken while their joint entropy is within it.
        stability: steps for which the likeliest text has to stay the same, to stop.
        confidence: nats a token; the mean entropy has to be below it, to stop.
    """

    steps: Annotated[int, msgspec.Meta(ge=1)] = 48
    t_min: float = 0.4
    t_max: float = 0.8
    entropy_bound: float = 0.1
    stability: int = 1
    confidence: float = 0.005


class ModelSpec(msgspec.Struct, frozen=True):
    """What a model is able to do.

    Attributes:
        shift: 1 when token i is read from the output at i - 1.
        attention: "full" sees both sides of a hole; "block" sees blocks of `block` tokens behind each
            other, so what is behind a hole is quoted in front of it; "prefix_canvas" sees what is
            before, and a canvas of `block` tokens as a whole.
        block: tokens of a block or canvas, 0 where there are none.
        max_context: tokens that it was trained to see at once.
        banned: tokens that are never part of a text.
        begin_of_file: the token that stands before a file's first one, and only there.
        trained_on: language that it knows, empty for no claim.
        instruction: whether it follows instructions.
        chat: how it is told one.
    """

    name: str
    noise: Noise
    shift: Literal[0, 1]
    attention: Literal["full", "block", "prefix_canvas", "causal"]
    length: Length
    max_context: Annotated[int, msgspec.Meta(ge=64)]
    block: Annotated[int, msgspec.Meta(ge=0)] = 0
    quote: Quote | None = None
    sampler: Sampler | None = None
    self_conditioning: bool = False
    edits_unmasked: bool = False
    banned: tuple[int, ...] = ()
    begin_of_file: int | None = None
    trained_on: str = ""
    instruction: bool = False
    chat: Chat | None = None

    @property
    def pad(self) -> int | None:
        """The token that fills a gap behind its text, or None."""
        return self.length.id if self.length.kind == "end_pad" else None

    @property
    def resizing(self) -> tuple[int, ...]:
        """The tokens that make a gap longer and shorter, or none."""
        if self.length.kind != "expand_delete":
            return ()
        return (self.length.id, self.length.delete)

    @property
    def sees(self) -> str:
        """How much of what is around a hole it sees, in a few words."""
        match self.attention:
            case "full":
                return "both sides"
            case "block":
                return f"what is before, and what is behind as a quotation; blocks of {self.block}"
            case "prefix_canvas":
                return f"what is before, and up to {self.block} tokens of hole and what is behind"
            case "causal":
                return "what is before, and what is behind as a quotation"

    @property
    def cannot(self) -> tuple[str, ...]:
        """What it cannot do, a sentence each."""
        sentences = []
        if not self.instruction:
            sentences.append(f"{self.name} does not follow instructions.")
        if self.attention in ("block", "causal"):
            sentences.append(
                f"{self.name} does not see the text behind a hole where it stands, only a quotation of it."
            )
        if self.attention == "causal":
            sentences.append(
                f"{self.name} writes from left to right: of several holes one after another, not jointly."
            )
        if self.length.kind == "fixed":
            sentences.append(
                f"{self.name} does not choose how long a text gets: a hole is filled to its last slot."
            )
        return tuple(sentences)

"""What a model's tokens spell, and which of them may stand where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from frostline.decoding.constrain import Rules
from frostline.models.backend import Backend
from frostline.worker.canvas import Canvas


class Vocabulary:
    """The tokens of one backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._made: dict[tuple[str, str], Tensor] = {}

    @cached_property
    def spelling(self) -> Sequence[bytes]:
        """(vocabulary,) the bytes of each token; special tokens spell nothing, whatever they are called."""
        spec = self._backend.spec
        spelling = list(self._backend.tokens.spelled)
        spelling += [b""] * (self._backend.vocabulary - len(spelling))
        for one in (*spec.banned, spec.noise.id, spec.pad, *spec.resizing):
            if one is not None:
                spelling[one] = b""
        return spelling

    @cached_property
    def banned(self) -> Tensor:
        """(vocabulary,) booleans: tokens that are never text."""
        banned = torch.tensor([not one or _unprintable(one) for one in self.spelling])
        spec = self._backend.spec
        for one in (*spec.resizing, *(() if spec.pad is None else (spec.pad,))):
            banned[one] = False
        return banned.to(self._backend.device)

    @cached_property
    def line_ends(self) -> Tensor:
        """(vocabulary,) booleans: tokens with a line end in them."""
        return torch.tensor([b"\n" in one for one in self.spelling]).to(self._backend.device)

    @cached_property
    def begins_line(self) -> Tensor:
        """(vocabulary,) booleans: tokens that begin with a line end."""
        begins = torch.tensor([one.startswith(b"\n") for one in self.spelling])
        return begins.to(self._backend.device)

    def rules(self, canvas: Canvas, forbidden: Sequence[Sequence[int]] = ()) -> Rules:
        """Return what the slots of a canvas may become.

        Args:
            forbidden: for each gap, tokens that it may not have now.
        """
        return Rules(
            gap=canvas.gap.to(self._backend.device),
            banned=self.banned,
            line_ends=self.line_ends,
            multiline=[gap.multiline for gap in canvas.gaps],
            required=[gap.required for gap in canvas.gaps],
            token_bytes=self.spelling,
            pad=self._backend.spec.pad,
            outside=[
                self._outside(gap.without, forbidden[number] if forbidden else ())
                for number, gap in enumerate(canvas.gaps)
            ],
            shallow=[self._shallow(gap.indent) for gap in canvas.gaps],
            begins_line=self.begins_line,
        )

    def over(self, multiline: bool, without: str) -> Tensor:
        """Return (vocabulary,) booleans: tokens that go on with what stands behind such a gap.

        To a text that is written in order they say that it is over: the end of its line, or the quote
        that closes its string.
        """
        behind = without if multiline else without + "\n"
        return self._once(("over", behind), lambda one: _goes_past(one, behind)).clone()

    def _outside(self, without: str, forbidden: Sequence[int]) -> Tensor | None:
        """Return (vocabulary,) booleans: tokens that would leave a hole by one of these characters."""
        outside = None
        if without:
            outside = self._once(("outside", without), lambda one: _leaves(one, without))
        if forbidden:
            outside = torch.zeros_like(self.banned) if outside is None else outside.clone()
            outside[list(forbidden)] = True
        return outside

    def _shallow(self, indent: str) -> Tensor | None:
        """Return (vocabulary,) booleans: tokens that end in a line begun with less than `indent`.

        None where that cannot be told from one token: the indentation is the next slot's then, and
        whether it is enough is the parser's to say.
        """
        start = indent.encode()
        if not start or b"\n" + start not in self.spelling:
            return None
        return self._once(("shallow", indent), lambda one: _falls_short(one, start))

    def _once(self, key: tuple[str, str], test: Callable[[bytes], bool]) -> Tensor:
        if key not in self._made:
            made = torch.tensor([test(one) for one in self.spelling])
            self._made[key] = made.to(self._backend.device)
        return self._made[key]


def _goes_past(token: bytes, behind: str) -> bool:
    # Blanks in front of a line end are nobody's text; those in front of a quote are its string's.
    return any(
        (token.lstrip(b" \t") if one == "\n" else token).startswith(one.encode()) for one in behind
    )


def _leaves(token: bytes, without: str) -> bool:
    # A backslash at the end would take the quote that follows for one of the string's own letters.
    return token.endswith(b"\\") or any(one.encode() in token for one in without)


def _falls_short(token: bytes, indent: bytes) -> bool:
    """Return True for a token that ends in a line begun with less than `indent`."""
    _, line_end, begun = token.rpartition(b"\n")
    return bool(line_end) and not begun.startswith(indent)


def _unprintable(spelled: bytes) -> bool:
    # Control characters are never wanted; CR is not either: gaps are written with LF and get the
    # file's own line ends at the very last.
    return any((byte < 0x20 and byte not in b"\t\n") or byte == 0x7F for byte in spelled)

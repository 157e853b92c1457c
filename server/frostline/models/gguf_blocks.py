"""Blocks of quantised numbers to floats, by the layouts of ggml (its `ggml-common.h` has the structs).

A block of 32 (or 256 for the K kinds) numbers has its scale in front or behind. The K kinds have a
scale of 6 bits for each 32 numbers (Q6_K: 8 bits for each 16) below the block's own.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_Blocks = Callable[[Tensor], Tensor]


def floats(raw: Tensor, kind: str) -> Tensor:
    """Return the float32 numbers, flat, that `raw` holds: (bytes,) uint8 of whole blocks of `kind`."""
    if kind in _PLAIN:
        return raw.view(_PLAIN[kind]).float()
    read, size = _KINDS[kind]
    return read(raw.view(-1, size)).reshape(-1)


def _half(blocks: Tensor, start: int) -> Tensor:
    """Return (blocks, 1) the half-precision number at byte `start` of each."""
    return blocks[:, start : start + 2].contiguous().view(torch.float16).float()


def _nibbles(bytes_: Tensor) -> Tensor:
    """Return (blocks, 2 x bytes): all the low halves, then all the high ones."""
    return torch.cat([bytes_ & 15, bytes_ >> 4], -1)


def _bits(bytes_: Tensor) -> Tensor:
    """Return (blocks, 8 x bytes): each byte's bits, the lowest first."""
    places = torch.arange(8, dtype=torch.uint8, device=bytes_.device)
    return ((bytes_[..., None] >> places) & 1).flatten(1)


def _q4_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * (_nibbles(blocks[:, 2:]).float() - 8)


def _q4_1(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * _nibbles(blocks[:, 4:]).float() + _half(blocks, 2)


def _q5_0(blocks: Tensor) -> Tensor:
    numbers = _nibbles(blocks[:, 6:]) + 16 * _bits(blocks[:, 2:6])
    return _half(blocks, 0) * (numbers.float() - 16)


def _q5_1(blocks: Tensor) -> Tensor:
    numbers = _nibbles(blocks[:, 8:]) + 16 * _bits(blocks[:, 4:8])
    return _half(blocks, 0) * numbers.float() + _half(blocks, 2)


def _q8_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * blocks[:, 2:].contiguous().view(torch.int8).float()


def _scales(packed: Tensor) -> tuple[Tensor, Tensor]:
    """Return (blocks, 8) scales and (blocks, 8) minimums out of the 12 bytes that hold both.

    The first four of each have their own bytes' low 6 bits; the others their low 4 bits in the last
    four bytes, and their high 2 in what is left of the first eight.
    """
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scale = torch.cat([first & 63, (third & 15) | (first >> 6 << 4)], -1)
    least = torch.cat([second & 63, (third >> 4) | (second >> 6 << 4)], -1)
    return scale.float(), least.float()


def _k(blocks: Tensor, numbers: Tensor) -> Tensor:
    """Return the floats of (blocks, 8, 32) numbers under 6-bit scales and minimums (Q4_K, Q5_K)."""
    scale, least = _scales(blocks[:, 4:16])
    scale, least = _half(blocks, 0) * scale, _half(blocks, 2) * least
    return scale[..., None] * numbers.float() - least[..., None]


def _q4_k(blocks: Tensor) -> Tensor:
    # 32 bytes are 64 numbers: the low halves the first 32 of them, the high halves the others.
    return _k(blocks, _nibbles(blocks[:, 16:].reshape(-1, 32)).view(len(blocks), 8, 32))


def _q5_k(blocks: Tensor) -> Tensor:
    low = _nibbles(blocks[:, 48:].reshape(-1, 32)).view(len(blocks), 8, 32)
    # Bit i of the 32 bytes belongs to the i-th 32 numbers.
    high = _bits(blocks[:, 16:48]).view(len(blocks), 32, 8).transpose(1, 2)
    return _k(blocks, low + 16 * high)


def _q6_k(blocks: Tensor) -> Tensor:
    # Two halves of 128 numbers, each with 64 bytes of low 4 bits and 32 bytes of high 2 bits.
    low = _nibbles(blocks[:, :128].reshape(-1, 64)).view(len(blocks), 2, 4, 32)
    places = torch.tensor([0, 2, 4, 6], dtype=torch.uint8, device=blocks.device)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> places[:, None] & 3
    numbers = (low + 16 * high).view(len(blocks), 16, 16).float() - 32
    scale = _half(blocks, 208) * blocks[:, 192:208].contiguous().view(torch.int8).float()
    return scale[..., None] * numbers


_PLAIN = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_KINDS: dict[str, tuple[_Blocks, int]] = {
    "Q4_0": (_q4_0, 18),
    "Q4_1": (_q4_1, 20),
    "Q5_0": (_q5_0, 22),
    "Q5_1": (_q5_1, 24),
    "Q8_0": (_q8_0, 34),
    "Q4_K": (_q4_k, 144),
    "Q5_K": (_q5_k, 176),
    "Q6_K": (_q6_k, 210),
}

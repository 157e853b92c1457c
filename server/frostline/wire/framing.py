"""Bytes to messages and back. Nothing here waits, reads or writes.

A frame is a length (4 bytes, most significant first) and that many bytes of msgpack. The length is
looked at before anything is kept, so an announced gigabyte costs nothing.
"""

from __future__ import annotations

import re
from typing import Generic, TypeVar

import msgspec

from frostline.errors import WireError
from frostline.wire.messages import Message, ToServer, ToWorker

MAX_FRAME = 32 * 1024 * 1024
_LENGTH = 4
_SURROGATE = re.compile("[\ud800-\udfff]")

M = TypeVar("M")


def sendable(text: str) -> str:
    """Return `text` without lone surrogates, which no UTF-8 can carry.

    Only frozen text can hold them, and frozen text is model input: it is never read back.
    """
    return (
        text
        if _SURROGATE.search(text) is None
        else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    )


def frame(message: Message) -> bytes:
    """Return the message as bytes for the socket.

    Raises:
        WireError: the message is larger than a frame may be, or holds what no frame can.
    """
    try:
        body = msgspec.msgpack.encode(message)
    except (UnicodeEncodeError, OverflowError, msgspec.MsgspecError) as error:
        raise WireError(f"the request cannot be sent: {error}") from error
    if len(body) > MAX_FRAME:
        raise WireError(f"the request is too large ({len(body)} bytes); select less")
    return len(body).to_bytes(_LENGTH, "big") + body


class Reader(Generic[M]):
    """Collects bytes and gives back whole messages of one direction."""

    def __init__(self, kind: type[M]) -> None:
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(kind)
        self._kept = bytearray()

    def feed(self, data: bytes) -> list[M]:
        """Return the messages that `data` completes; the rest is kept.

        Raises:
            WireError: a frame is too large or holds no message of this direction.
        """
        self._kept += data
        messages: list[M] = []
        while (body := self._next_body()) is not None:
            try:
                messages.append(self._decoder.decode(body))
            except msgspec.MsgspecError as error:
                raise WireError(f"the other side sent something unreadable: {error}") from error
        return messages

    def _next_body(self) -> bytes | None:
        if len(self._kept) < _LENGTH:
            return None
        length = int.from_bytes(self._kept[:_LENGTH], "big")
        if length > MAX_FRAME:
            raise WireError(
                f"the other side announced {length} bytes; at most {MAX_FRAME} are read"
            )
        if len(self._kept) < _LENGTH + length:
            return None
        body = bytes(self._kept[_LENGTH : _LENGTH + length])
        del self._kept[: _LENGTH + length]
        return body


def server_side() -> Reader[ToServer]:
    """Return a reader of what a worker sends."""
    return Reader(ToServer)  # type: ignore[arg-type]


def worker_side() -> Reader[ToWorker]:
    """Return a reader of what a server sends."""
    return Reader(ToWorker)  # type: ignore[arg-type]

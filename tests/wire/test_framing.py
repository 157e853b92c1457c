"""Messages survive any cutting of their bytes; what is no message costs nothing and says so."""

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.errors import WireError
from frostline.wire import framing
from frostline.wire import messages as wire
from frostline.wire.framing import MAX_FRAME, frame, sendable, server_side, worker_side

INFILL = wire.Infill(
    "run",
    (wire.Text("a\u2028é😀\0"), wire.Gap(0, old="b", required="c", room=3, multiline=False)),
    preamble="import x\n",
    at_start=True,
    instruction="shorter",
    strength=0.5,
    decoding=wire.Decoding(steps=3, threshold=None, entropy_bound=0.1, seed=2**62),
    interactive=False,
)
TO_WORKER = [
    wire.Hello(token="t", version="1"),
    wire.Load(),
    INFILL,
    wire.Cancel("run"),
    wire.Score("s", (wire.Text("a"), wire.Gap(1, old="b"))),
    wire.AskStatus(),
    wire.Unload(),
]
TO_SERVER = [
    wire.Hello(),
    wire.Step("run", 1, 2, (wire.GapDraft(0, (wire.Piece("a", "open", 0.25),)),)),
    wire.Done("run", "converged", (wire.GapText(0, "a", True, 0.5),), wire.Figures(regret=0.0)),
    wire.Done("run", "cancelled"),
    wire.Scored("s", (-1.5,), (1,)),
    wire.Failed("", "wire", "sentence"),
    wire.Status("loading", model="m", progress=0.5),
]


@pytest.mark.parametrize("messages", [TO_WORKER, TO_SERVER], ids=["to-worker", "to-server"])
def test_messages_come_back_fed_one_byte_at_a_time(messages: list[wire.Message]) -> None:
    reader = worker_side() if messages is TO_WORKER else server_side()
    data = b"".join(map(frame, messages))
    heard = [
        message for place in range(len(data)) for message in reader.feed(data[place : place + 1])
    ]
    assert heard == messages


@given(st.lists(st.integers(0, 6), max_size=5), st.data())
def test_messages_come_back_cut_anywhere(chosen: list[int], data: st.DataObject) -> None:
    messages = [TO_SERVER[one] for one in chosen]
    raw = b"".join(map(frame, messages))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    reader, heard = server_side(), []
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        heard += reader.feed(raw[start:end])
    assert heard == messages


def test_an_announced_gigabyte_is_refused_at_its_length() -> None:
    with pytest.raises(WireError, match="announced 1073741824 bytes; at most 33554432 are read"):
        worker_side().feed((1 << 30).to_bytes(4, "big"))


def test_the_largest_frame_is_read_and_a_larger_one_not_sent() -> None:
    overhead = len(frame(wire.Cancel("x" * 2**16))) - 4 - 2**16
    largest = wire.Cancel("x" * (MAX_FRAME - overhead - 2))
    assert worker_side().feed(frame(largest)) == [largest]
    with pytest.raises(WireError, match="the request is too large"):
        frame(wire.Cancel("x" * MAX_FRAME))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x80",
        msgspec.msgpack.encode([]),
        msgspec.msgpack.encode({"type": "teleport"}),
        msgspec.msgpack.encode({"type": 7}),
        msgspec.msgpack.encode({"id": "x"}),
        msgspec.msgpack.encode({"type": "cancel"}),
        msgspec.msgpack.encode({"type": "cancel", "id": 7}),
        msgspec.msgpack.encode({"type": "infill", "id": "x", "segments": [{"type": "gap"}]}),
        msgspec.msgpack.encode({"type": "cancel", "id": "x"}) + b"more",
        b"\x81\xa4type\xa6\xff\xff\xff\xff\xff\xff",
    ],
)
def test_what_is_no_message_is_said(body: bytes) -> None:
    with pytest.raises(WireError, match="the other side sent something unreadable"):
        worker_side().feed(len(body).to_bytes(4, "big") + body)


def test_the_two_directions_do_not_mix() -> None:
    with pytest.raises(WireError):
        worker_side().feed(frame(wire.Done("x", "converged")))
    with pytest.raises(WireError):
        server_side().feed(frame(wire.Cancel("x")))


@given(st.binary(max_size=200))
def test_garbage_is_an_error_or_waits_for_more(garbage: bytes) -> None:
    reader = worker_side()
    with contextlib.suppress(WireError):
        assert reader.feed(garbage) == []


def test_fields_of_a_newer_version_are_passed_over() -> None:
    body = msgspec.msgpack.encode({"type": "cancel", "id": "x", "reason": "typed on"})
    assert worker_side().feed(len(body).to_bytes(4, "big") + body) == [wire.Cancel("x")]


def test_lone_surrogates_are_replaced_before_they_are_sent() -> None:
    text = "a\ud800b\udfffc😀"
    with pytest.raises(WireError, match="cannot be sent"):
        frame(wire.Cancel(text))
    assert sendable(text) == "a\ufffdb\ufffdc😀"
    assert worker_side().feed(frame(wire.Cancel(sendable(text))))[0].id == sendable(text)
    plain = "a" * 9
    assert sendable(plain) is plain


def test_numbers_too_large_for_the_wire_are_said() -> None:
    with pytest.raises(WireError, match="cannot be sent"):
        frame(wire.Infill("x", (), decoding=wire.Decoding(seed=2**80)))


def test_every_message_is_of_one_direction_or_both() -> None:
    kinds = {type(message).__name__ for message in TO_WORKER + TO_SERVER}
    named = {
        name
        for name, kind in vars(wire).items()
        if isinstance(kind, type) and issubclass(kind, wire.Message) and kind is not wire.Message
    }
    assert kinds == named
    assert framing.MAX_FRAME > 2**20

"""Requests in the order they came, responses in the order of their requests."""

from __future__ import annotations

import weakref
from itertools import permutations

import pytest

from kafkapy.common.errors import ProtocolViolation
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.compile import decode
from kafkapy.protocol.framing import ReceiveBuffers
from kafkapy.protocol.headers import encode_request
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.server_connection import Request, ServerConnection


def request(number: int) -> bytes:
    return encode_request(HeartbeatRequest(group_id=f"group-{number}"), 4, number, "me")


def receive(connection: ServerConnection, data: bytes) -> list[Request]:
    connection.get_buffer()[: len(data)] = data
    return [connection.request(frame) for frame in connection.bytes_received(len(data))]


def made(requests: int) -> ServerConnection:
    connection = ServerConnection(1000, ReceiveBuffers(4096))
    receive(connection, b"".join(map(request, range(requests))))
    return connection


def test_requests() -> None:
    connection = ServerConnection(1000, ReceiveBuffers(4096))
    stream = request(1) + request(2) + request(3)
    first = receive(connection, stream[:-1])
    assert [each.slot for each in first] == [0, 1]
    assert [each.header.correlation_id for each in first] == [1, 2]
    (last,) = receive(connection, stream[-1:])
    assert last.slot == 2
    assert last.header == (ApiKey.HEARTBEAT, 4, 3, "me")
    message, end = decode(HeartbeatRequest, 4, last.frame, last.body)
    assert message.group_id == "group-3"
    assert end == len(last.frame)
    assert connection.pending == 3


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_responses_leave_in_the_order_of_the_requests(order: tuple[int, ...]) -> None:
    connection = made(4)
    sent = b""
    answered: set[int] = set()
    for slot in order:
        connection.respond(slot, [b"<%d" % slot, b">"])
        answered.add(slot)
        sent += b"".join(connection.data_to_send())
        in_order = next(n for n in range(5) if n not in answered)
        assert sent == b"".join(b"<%d>" % n for n in range(in_order))
        assert connection.pending == 4 - in_order


def test_a_request_may_have_no_response() -> None:
    connection = made(3)
    connection.respond(2, [b"c"])
    connection.respond(1, None)
    assert connection.data_to_send() == []
    connection.respond(0, [b"a"])
    assert connection.data_to_send() == [b"a", b"c"]
    assert connection.data_to_send() == []
    assert connection.pending == 0


def test_buffers_are_not_copied() -> None:
    connection = made(1)
    records = memoryview(bytes(10))
    connection.respond(0, [b"head", records])
    assert connection.data_to_send()[1] is records


def test_sent_responses_are_let_go() -> None:
    connection = made(2)
    early, late = memoryview(b"early"), memoryview(b"late")
    held = [weakref.ref(early), weakref.ref(late)]
    connection.respond(1, [late])
    connection.respond(0, [early])
    connection.data_to_send()
    del early, late
    assert [each() for each in held] == [None, None]


@pytest.mark.parametrize("slot", [-1, 0, 2, 3])
def test_answering_twice_or_what_was_not_asked_is_a_bug(slot: int) -> None:
    connection = made(3)
    connection.respond(0, [])
    connection.respond(2, [])
    with pytest.raises(AssertionError):
        connection.respond(slot, [])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xff\xff\xff", "-1 bytes"),
        (b"GET / HTTP/1.1\r\n", "1195725856 bytes"),
        (b"\0\0\0\x02\0\x12", "request header in 2 bytes"),
        (b"\0\0\0\0", "request header in 0 bytes"),
    ],
)
def test_what_is_not_kafka(data: bytes, reason: str) -> None:
    with pytest.raises(ProtocolViolation, match=reason):
        receive(ServerConnection(1000, ReceiveBuffers(4096)), data)

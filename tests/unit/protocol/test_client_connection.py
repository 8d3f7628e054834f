"""A client and a server connection, back to back."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ProtocolViolation
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.client_connection import ClientConnection, Response
from kafkapy.protocol.framing import ReceiveBuffers
from kafkapy.protocol.headers import encode_response
from kafkapy.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkapy.protocol.messages.fetch import FetchRequest as Fetch
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.protocol.server_connection import ServerConnection


def receive(client: ClientConnection, data: bytes) -> list[Response]:
    responses = []
    while data:
        buffer = client.get_buffer()
        n = min(len(buffer), len(data))
        buffer[:n] = data[:n]
        responses += client.bytes_received(n)
        data = data[n:]
    return responses


def heartbeat(correlation_id: int, error_code: int = 0) -> bytes:
    message = HeartbeatResponse(error_code=error_code)
    return b"".join(encode_response(message, ApiKey.HEARTBEAT, 4, correlation_id))


def test_a_conversation() -> None:
    client, server = ClientConnection("me"), ServerConnection(1000, ReceiveBuffers(4096))
    for number in range(3):
        correlation_id, frame = client.send(HeartbeatRequest(generation_id=number), 4)
        assert correlation_id == number
        server.get_buffer()[: len(frame)] = frame
        (received,) = server.bytes_received(len(frame))
        request = server.request(received)
        assert request.header == (ApiKey.HEARTBEAT, 4, number, "me")
        reply = encode_response(
            HeartbeatResponse(error_code=number), request.header.api_key, 4, number
        )
        server.respond(request.slot, reply)
    assert client.pending == 3
    data = b"".join(server.data_to_send())
    first = receive(client, data[:20])
    rest = receive(client, data[20:])
    assert first + rest == [(n, HeartbeatResponse(error_code=n)) for n in range(3)]
    assert client.pending == 0


def test_each_response_is_read_in_the_version_of_its_request() -> None:
    client = ClientConnection(None)
    client.send(HeartbeatRequest(), 0)
    client.send(HeartbeatRequest(), 4)
    data = b"\0\0\0\x06" + b"\0\0\0\0" + b"\0\x05" + heartbeat(1, 6)
    assert [each.message for each in receive(client, data)] == [
        HeartbeatResponse(error_code=5),
        HeartbeatResponse(error_code=6),
    ]


@pytest.mark.parametrize("size", [100, 300_000])
def test_records_stay_valid_after_later_responses(size: int) -> None:
    def fetched(byte: bytes, correlation_id: int) -> bytes:
        partition = PartitionData(records=byte * size)
        topic = FetchableTopicResponse(topic="t", partitions=[partition])
        message = FetchResponse(responses=[topic])
        return b"".join(encode_response(message, ApiKey.FETCH, 12, correlation_id))

    client = ClientConnection("me")
    for _ in range(3):
        client.send(Fetch(), 12)
    received = receive(client, fetched(b"a", 0))
    received += receive(client, fetched(b"b", 1) + fetched(b"c", 2))
    messages: list[Any] = [each.message for each in received]
    records = [message.responses[0].partitions[0].records for message in messages]
    assert records == [b"a" * size, b"b" * size, b"c" * size]


def test_frames_that_their_sender_made_and_reads() -> None:
    client = ClientConnection("me")
    client.send(HeartbeatRequest(), 4)
    assert client.send_frame(lambda correlation_id: b"%d" % correlation_id, bytes) == b"1"
    client.send(HeartbeatRequest(), 4)
    assert client.pending == 3
    own = b"\0\0\0\x07" + b"\0\0\0\x01" + b"own"
    received = receive(client, heartbeat(0, 5) + own + heartbeat(2, 6))
    assert received == [
        (0, HeartbeatResponse(error_code=5)),
        (1, own[4:]),
        (2, HeartbeatResponse(error_code=6)),
    ]


def test_produce_with_acks_0_waits_for_no_response() -> None:
    client = ClientConnection("me")
    client.send(ProduceRequest(acks=0), 9, expect_response=False)
    client.send(HeartbeatRequest(), 4)
    assert client.pending == 1
    assert receive(client, heartbeat(1)) == [(1, HeartbeatResponse())]


def test_a_refused_request_leaves_no_trace() -> None:
    client = ClientConnection("me")
    with pytest.raises(ApiError):
        client.send(HeartbeatRequest(), 99)
    assert client.pending == 0
    assert client.send(HeartbeatRequest(), 4)[0] == 0


def test_the_wrong_response() -> None:
    client = ClientConnection("me")
    client.send(HeartbeatRequest(), 4)
    with pytest.raises(ProtocolViolation, match="correlation id 5 instead of 0"):
        receive(client, heartbeat(5))


def test_a_response_to_nothing() -> None:
    with pytest.raises(ProtocolViolation, match="to no request"):
        receive(ClientConnection("me"), heartbeat(0))


def test_a_response_that_is_too_large() -> None:
    client = ClientConnection("me", max_response_bytes=10)
    client.send(HeartbeatRequest(), 4)
    with pytest.raises(ProtocolViolation, match="frame of 12 bytes"):
        receive(client, heartbeat(0))

"""Request and response headers in their three and two versions."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ProtocolViolation
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from kafkapy.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.primitives import tagged_field, tagged_fields
from kafkapy.protocol.schema import Message

V1_HEADER = "000c" + "0003" + "00000007" + "0002" + b"me".hex()
V2_HEADER = "000c" + "0004" + "00000007" + "0002" + b"me".hex() + "00"
BODY_V3 = "0001" + b"g".hex() + "00000000" + "0000" + "ffff"
BODY_V4 = "02" + b"g".hex() + "00000000" + "01" + "00" + "00"


@pytest.mark.parametrize(
    ("version", "header", "body"), [(3, V1_HEADER, BODY_V3), (4, V2_HEADER, BODY_V4)]
)
def test_request(version: int, header: str, body: str) -> None:
    frame = encode_request(HeartbeatRequest(group_id="g"), version, 7, "me")
    wire = header + body
    assert frame.hex() == (len(wire) // 2).to_bytes(4, "big").hex() + wire
    decoded, position = decode_request_header(memoryview(frame)[4:])
    assert decoded == RequestHeader(ApiKey.HEARTBEAT, version, 7, "me")
    assert position == len(header) // 2


def test_null_client_id() -> None:
    frame = encode_request(HeartbeatRequest(), 4, 7, None)
    assert frame[12:15].hex() == "ffff00"
    decoded, position = decode_request_header(memoryview(frame)[4:])
    assert (decoded.client_id, position) == (None, 11)


def test_a_client_id_that_is_not_utf_8_is_read_as_java_reads_it() -> None:
    for version, tags in (("0003", ""), ("0004", "00")):
        frame = bytes.fromhex("000c" + version + "00000007" + "0004") + b"caf\xe9"
        decoded, position = decode_request_header(memoryview(frame + bytes.fromhex(tags)))
        assert (decoded.client_id, position) == ("caf\ufffd", len(frame + bytes.fromhex(tags)))


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    frame = encode_request(ControlledShutdownRequest(broker_id=5), 0, 7, "me")
    assert frame.hex() == "0000000c" + "0007" + "0000" + "00000007" + "00000005"
    decoded, position = decode_request_header(memoryview(frame)[4:])
    assert (decoded, position) == (RequestHeader(7, 0, 7, None), 8)
    newer = encode_request(ControlledShutdownRequest(broker_id=5), 1, 7, "me")
    assert decode_request_header(memoryview(newer)[4:])[0].client_id == "me"


def test_tagged_fields_of_a_header_are_skipped() -> None:
    tags = tagged_fields([tagged_field(0, [b"abc"])])
    frame = bytes.fromhex(V2_HEADER[:-2]) + tags + b"body"
    _, position = decode_request_header(memoryview(frame))
    assert frame[position:] == b"body"


def test_api_versions_of_the_future_can_be_answered() -> None:
    frame = encode_request(ApiVersionsRequest(client_software_name="x"), 4, 7, "me")[4:]
    newer = frame[:2] + (99).to_bytes(2, "big") + frame[4:]
    decoded, position = decode_request_header(memoryview(newer))
    assert decoded == RequestHeader(ApiKey.API_VERSIONS, 99, 7, "me")
    assert position == 13


@pytest.mark.parametrize("key", ["7fff", "ffff", "0034"])
def test_an_unknown_api_shows_its_key_version_and_correlation_id(key: str) -> None:
    frame = bytes.fromhex(key + "0005" + "00000007" + "ffffffff")
    decoded, position = decode_request_header(memoryview(frame))
    key_number = int.from_bytes(bytes.fromhex(key), "big", signed=True)
    assert (decoded, position) == (RequestHeader(key_number, 5, 7, None), 8)


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "000c0003000000",
        "000c" + "0003" + "00000007",
        "000c" + "0003" + "00000007" + "0003" + "6d65",
        "000c" + "0003" + "00000007" + "fffe" + "6d65",
        "000c" + "0004" + "00000007" + "ffff",
        "000c" + "0004" + "00000007" + "ffff" + "010005",
    ],
)
def test_a_broken_header_is_refused(frame: str) -> None:
    with pytest.raises(ProtocolViolation):
        decode_request_header(memoryview(bytes.fromhex(frame)))


@pytest.mark.parametrize(
    ("message", "version", "wire"),
    [
        (HeartbeatResponse(error_code=5), 3, "0000000a" + "00000007" + "00000000" + "0005"),
        (
            HeartbeatResponse(error_code=5),
            4,
            "0000000c" + "00000007" + "00" + "00000000" + "0005" + "00",
        ),
        (ApiVersionsResponse(), 0, "0000000a" + "00000007" + "0000" + "00000000"),
        (ApiVersionsResponse(), 3, "0000000c" + "00000007" + "0000" + "01" + "00000000" + "00"),
    ],
)
def test_response(message: Message, version: int, wire: str) -> None:
    """v1 from the first flexible version on, but never for ApiVersions."""
    parts = encode_response(message, message.API_KEY, version, 7)
    assert b"".join(parts).hex() == wire
    assert decode_response(type(message), version, bytes.fromhex(wire)[4:]) == (7, message)


def test_the_size_prefix_counts_records_that_go_by_reference() -> None:
    records = bytes(50_000)
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])
    message = FetchResponse(responses=[topic])
    parts = encode_response(message, ApiKey.FETCH, 12, 7)
    frame = b"".join(parts)
    assert parts[1] is records
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert decode_response(FetchResponse, 12, frame[4:])[1] == message


@pytest.mark.parametrize("frame", ["", "000000", "00000007", "0000000701"])
def test_a_broken_response_is_refused(frame: str) -> None:
    with pytest.raises(ProtocolViolation):
        decode_response(HeartbeatResponse, 4, bytes.fromhex(frame))


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ApiError):
        encode_request(HeartbeatRequest(), 5, 7, "me")
    with pytest.raises(ApiError):
        encode_response(HeartbeatResponse(), ApiKey.HEARTBEAT, 5, 7)

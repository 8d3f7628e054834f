"""A shape reads what the codec reads, packs what the codec packs, and takes nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ProtocolViolation
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.compile import decode
from kafkapy.protocol.headers import (
    RequestHeader,
    decode_request_header,
    encode_request,
    encode_response,
)
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkapy.protocol.produce_shape import FIRST_VERSION, ProduceShape

VERSIONS = range(FIRST_VERSION, 14)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
CLIENT_IDS = st.none() | st.text(max_size=20)
REQUESTS = st.builds(
    ProduceRequest,
    transactional_id=st.none() | st.text(max_size=9),
    acks=st.sampled_from([0, 1, -1]),
    timeout_ms=INT32,
    topic_data=st.builds(TopicProduceData, name=st.text(max_size=40)).map(lambda row: [row]),
)
RECORDS = st.binary(max_size=20) | st.sampled_from([bytes(n) for n in (126, 127, 16382, 16383)])


def request(
    index: int = 3, records: bytes | None = b"batch", acks: int = -1, topic: str = "topic"
) -> ProduceRequest:
    row = PartitionProduceData(index=index, records=records)
    topic_id = Uuid(topic.encode().ljust(16))  # from v13 on requests have no names
    topics = [TopicProduceData(name=topic, topic_id=topic_id, partition_data=[row])]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics)


def frame_of(
    message: ProduceRequest, version: int, correlation_id: int = 0, client_id: str | None = "me"
) -> memoryview:
    return memoryview(encode_request(message, version, correlation_id, client_id)[4:])


def shape_of(message: ProduceRequest, version: int, client_id: str | None = "me") -> ProduceShape:
    header = RequestHeader(ApiKey.PRODUCE, version, 0, client_id)
    shape = ProduceShape.of(frame_of(message, version, 0, client_id), header, message)
    assert shape is not None
    return shape


@given(
    message=REQUESTS,
    version=st.sampled_from(VERSIONS),
    client_id=CLIENT_IDS,
    correlation_id=INT32,
    index=INT32,
    records=RECORDS,
)
def test_a_request_of_the_shape(
    message: ProduceRequest,
    version: int,
    client_id: str | None,
    correlation_id: int,
    index: int,
    records: bytes,
) -> None:
    topic = message.topic_data[0]
    topic.partition_data = [PartitionProduceData(index=0, records=b"first")]
    shape = shape_of(message, version, client_id)
    assert (shape.topic, shape.acks, shape.version) == (topic.name, message.acks, version)
    topic.partition_data = [PartitionProduceData(index=index, records=records)]
    matched = shape.match(frame_of(message, version, correlation_id, client_id))
    assert matched == (correlation_id, index, records)


@given(version=st.sampled_from(VERSIONS), at=st.integers(0), to=st.integers(0, 255))
def test_a_frame_with_another_byte_is_read_as_the_codec_reads_it(
    version: int, at: int, to: int
) -> None:
    shape = shape_of(request(), version)
    frame = bytearray(frame_of(request(9, b"other records"), version, 5))
    frame[at % len(frame)] = to
    matched = shape.match(memoryview(frame))
    if matched is None:
        return
    header, body = decode_request_header(memoryview(frame))
    message, end = decode(ProduceRequest, version, memoryview(frame), body)
    assert end == len(frame)
    assert header == (ApiKey.PRODUCE, version, matched[0], "me")
    expected = request(matched[1], bytes(matched[2]))
    assert frame_of(message, version) == frame_of(expected, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_frame_cut_anywhere_is_not_of_the_shape(version: int) -> None:
    shape = shape_of(request(), version)
    frame = frame_of(request(), version)
    for size in range(8, len(frame)):
        assert shape.match(frame[:size]) is None
    assert shape.match(memoryview(bytes(frame) + b"\0")) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_another_request_is_not_of_the_shape(version: int) -> None:
    shape = shape_of(request(), version)
    assert shape.match(frame_of(request(), version)) is not None
    for other in (request(acks=1), request(topic="topid"), request(topic="topics")):
        assert shape.match(frame_of(other, version)) is None
    two = request()
    two.topic_data[0].partition_data.append(PartitionProduceData(index=4, records=b""))
    assert shape.match(frame_of(two, version)) is None
    assert shape.match(frame_of(request(records=None), version)) is None
    assert shape.match(frame_of(request(), version, client_id="you")) is None
    for another in VERSIONS:
        if another != version:
            assert shape.match(frame_of(request(), another)) is None


@pytest.mark.parametrize("version", [9, 11])
def test_a_request_with_tagged_fields_has_no_shape(version: int) -> None:
    frame = frame_of(request(), version)
    tagged = memoryview(bytes(frame[:-1]) + b"\x01\x63\x01x")
    header, body = decode_request_header(tagged)
    message, _ = decode(ProduceRequest, version, tagged, body)
    assert ProduceShape.of(tagged, header, message) is None
    assert shape_of(request(), version).match(tagged) is None


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (request(), FIRST_VERSION - 1),
        (request(acks=2), 9),
        (request(records=None), 9),
        (ProduceRequest(acks=1), 9),
        (ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t")]), 9),
    ],
    ids=["old version", "acks unknown", "no records", "no topic", "no partition"],
)
def test_what_has_no_shape(message: ProduceRequest, version: int) -> None:
    header = RequestHeader(ApiKey.PRODUCE, version, 0, "me")
    assert ProduceShape.of(frame_of(message, version), header, message) is None


@given(
    message=REQUESTS,
    version=st.sampled_from(VERSIONS),
    correlation_id=INT32,
    index=INT32,
    error_code=st.integers(-1, 127),
    offsets=st.tuples(INT64, INT64, INT64),
    throttle_time_ms=st.integers(0, 2**31 - 1),
)
def test_the_answer_is_the_codecs(
    message: ProduceRequest,
    version: int,
    correlation_id: int,
    index: int,
    error_code: int,
    offsets: tuple[int, int, int],
    throttle_time_ms: int,
) -> None:
    topic = message.topic_data[0]
    topic.partition_data = [PartitionProduceData(index=0, records=b"")]
    row = PartitionProduceResponse(
        index=index,
        error_code=error_code,
        base_offset=offsets[0],
        log_append_time_ms=offsets[1],
        log_start_offset=offsets[2],
    )
    answer = ProduceResponse(
        responses=[TopicProduceResponse(name=topic.name, partition_responses=[row])],
        throttle_time_ms=throttle_time_ms,
    )
    expected = b"".join(encode_response(answer, ApiKey.PRODUCE, version, correlation_id))
    packed = shape_of(message, version).response(
        correlation_id, index, error_code, *offsets, throttle_time_ms
    )
    assert packed == expected


def test_a_frame_too_short_for_a_header_is_nobodys() -> None:
    with pytest.raises(ProtocolViolation):
        decode_request_header(memoryview(b"\0\0\0"))
    assert shape_of(request(), 9).match(memoryview(b"\0\0\0")) is None

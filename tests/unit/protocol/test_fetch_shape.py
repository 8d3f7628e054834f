"""A shape reads what the codec reads, packs what the codec packs, and takes nothing else."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ProtocolViolation
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.compile import decode
from kafkapy.protocol.fetch_shape import FIRST_VERSION, FetchShape, RequestRow, ResponseRow
from kafkapy.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from kafkapy.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from kafkapy.protocol.schema import Message

VERSIONS = range(FIRST_VERSION, 18)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TOPIC_IDS = st.binary(min_size=16, max_size=16).map(Uuid)
CLIENT_IDS = st.none() | st.text(max_size=20)
REQUEST_ROWS = st.builds(
    RequestRow,
    INT32,
    st.integers(1, 2**31 - 1),
    TOPIC_IDS,
    INT32,
    INT32,
    INT64,
    INT32,
    INT64,
    INT32,
)
RECORDS = st.binary(max_size=20) | st.sampled_from([bytes(n) for n in (126, 127, 16382, 16383)])
ROW = RequestRow(5, 7, Uuid(bytes(range(16))), 3, 4, 99, 4, 0, 1 << 20)


M = TypeVar("M", bound=Message)


def changed(message: M, **fields: Any) -> M:
    """A copy with other fields."""
    other = copy(message)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def request(row: RequestRow = ROW, session_id: int = 33, max_wait_ms: int = 500) -> FetchRequest:
    named = FetchPartition(
        partition=row.partition,
        current_leader_epoch=row.current_leader_epoch,
        fetch_offset=row.fetch_offset,
        last_fetched_epoch=row.last_fetched_epoch,
        log_start_offset=row.log_start_offset,
        partition_max_bytes=row.max_bytes,
    )
    return FetchRequest(
        replica_state=ReplicaState(replica_id=2, replica_epoch=77),
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=10 << 20,
        session_id=session_id,
        session_epoch=row.session_epoch,
        topics=[FetchTopic(topic_id=Uuid(row.topic_id), partitions=[named])],
    )


def frame_of(
    message: FetchRequest, version: int, correlation_id: int = 5, client_id: str | None = "me"
) -> memoryview:
    if version < 15:  # named by another field, with the same meaning
        message = changed(message, replica_id=2, replica_state=ReplicaState())
    return memoryview(encode_request(message, version, correlation_id, client_id)[4:])


def shape_of(version: int, client_id: str | None = "me", session_id: int = 33) -> FetchShape:
    message = request(session_id=session_id)
    if version < 15:
        message = changed(message, replica_id=2, replica_state=ReplicaState())
    header = RequestHeader(ApiKey.FETCH, version, 0, client_id)
    shape = FetchShape.of(frame_of(message, version, 0, client_id), header, message)
    assert shape is not None
    return shape


@given(
    version=st.sampled_from(VERSIONS),
    client_id=CLIENT_IDS,
    session_id=st.integers(1, 2**31 - 1),
    row=REQUEST_ROWS,
)
def test_a_request_of_the_shape(
    version: int, client_id: str | None, session_id: int, row: RequestRow
) -> None:
    shape = shape_of(version, client_id, session_id)
    frame = frame_of(request(row, session_id), version, row.correlation_id, client_id)
    assert shape.match(frame) == row
    assert shape.request(*row) == len(frame).to_bytes(4, "big") + frame


@given(version=st.sampled_from(VERSIONS), at=st.integers(0), to=st.integers(0, 255))
def test_a_request_with_another_byte_is_read_as_the_codec_reads_it(
    version: int, at: int, to: int
) -> None:
    frame = bytearray(frame_of(request(), version))
    frame[at % len(frame)] = to
    matched = shape_of(version).match(memoryview(frame))
    if matched is None:
        return
    header, body = decode_request_header(memoryview(frame))
    message, end = decode(FetchRequest, version, memoryview(frame), body)
    assert end == len(frame)
    assert header == (ApiKey.FETCH, version, matched.correlation_id, "me")
    expected = request(matched)
    if version < 15:
        expected = changed(expected, replica_id=2, replica_state=ReplicaState())
    assert message == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_anywhere_is_not_of_the_shape(version: int) -> None:
    shape = shape_of(version)
    frame = frame_of(request(), version)
    for size in range(len(frame)):
        assert shape.match(frame[:size]) is None


def with_two_rows() -> FetchRequest:
    message = request()
    message.topics[0].partitions *= 2
    return message


@pytest.mark.parametrize(
    "message",
    [
        with_two_rows(),
        changed(request(), topics=[]),
        changed(request(), topics=request().topics * 2),
        changed(request(), forgotten_topics_data=[ForgottenTopic(topic_id=Uuid(bytes(16)))]),
        changed(request(), rack_id="r"),
        changed(request(), max_wait_ms=501),
        changed(request(), session_id=34),
        changed(request(), replica_state=ReplicaState(replica_id=2, replica_epoch=78)),
    ],
)
def test_other_requests_are_not_of_the_shape(message: FetchRequest) -> None:
    assert shape_of(17).match(frame_of(message, 17)) is None


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (with_two_rows(), 17),
        (changed(request(), session_epoch=0), 17),
        (changed(request(), session_epoch=-1), 17),
        (changed(request(), cluster_id="c"), 17),
        (changed(request(), topics=[]), 12),
    ],
)
def test_other_requests_have_no_shape(message: FetchRequest, version: int) -> None:
    header = RequestHeader(ApiKey.FETCH, version, 0, "me")
    assert FetchShape.of(frame_of(message, version), header, message) is None


def answer(row: ResponseRow, session_id: int = 33) -> FetchResponse:
    data = PartitionData(
        partition_index=row.partition,
        high_watermark=row.high_watermark,
        last_stable_offset=row.last_stable_offset,
        log_start_offset=row.log_start_offset,
        aborted_transactions=None,
        records=row.records,
    )
    topic = FetchableTopicResponse(topic_id=Uuid(row.topic_id), partitions=[data])
    return FetchResponse(session_id=session_id, responses=[topic])


def answer_frame(message: FetchResponse, version: int, correlation_id: int) -> bytes:
    return b"".join(encode_response(message, ApiKey.FETCH, version, correlation_id))


@given(
    version=st.sampled_from(VERSIONS),
    row=st.builds(
        ResponseRow, INT32, TOPIC_IDS, INT32, INT64, INT64, INT64, RECORDS.map(memoryview)
    ),
)
def test_an_answer_of_the_shape(version: int, row: ResponseRow) -> None:
    shape = shape_of(version)
    frame = answer_frame(answer(row), version, row.correlation_id)
    assert b"".join(shape.response(*row[:-1], bytes(row.records))) == frame
    assert shape.match_response(memoryview(frame)[4:]) == row


def test_many_records_are_not_copied() -> None:
    records = bytes(10_000)
    assert any(part is records for part in shape_of(17).response(*PLAIN[:-1], records))


PLAIN = ResponseRow(5, Uuid(bytes(range(16))), 3, 99, 98, 1, memoryview(b"some records"))


@given(version=st.sampled_from(VERSIONS), at=st.integers(0), to=st.integers(0, 255))
def test_an_answer_with_another_byte_is_read_as_the_codec_reads_it(
    version: int, at: int, to: int
) -> None:
    frame = bytearray(answer_frame(answer(PLAIN), version, 5)[4:])
    frame[at % len(frame)] = to
    matched = shape_of(version).match_response(memoryview(frame))
    if matched is not None:
        correlation_id, message = decode_response(FetchResponse, version, memoryview(frame))
        assert (correlation_id, message) == (matched.correlation_id, answer(matched))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_cut_anywhere_is_not_of_the_shape(version: int) -> None:
    shape = shape_of(version)
    frame = memoryview(answer_frame(answer(PLAIN), version, 5))[4:]
    for size in range(len(frame)):
        assert shape.match_response(frame[:size]) is None


def with_row(**fields: Any) -> FetchResponse:
    message = answer(PLAIN)
    for name, value in fields.items():
        setattr(message.responses[0].partitions[0], name, value)
    return message


@pytest.mark.parametrize(
    "message",
    [
        with_row(error_code=6),
        with_row(records=None),
        with_row(aborted_transactions=[]),
        with_row(preferred_read_replica=1),
        with_row(diverging_epoch=EpochEndOffset(epoch=1, end_offset=2)),
        changed(answer(PLAIN), error_code=70),
        changed(answer(PLAIN), session_id=34),
        changed(answer(PLAIN), throttle_time_ms=1),
        changed(answer(PLAIN), responses=[]),
        changed(answer(PLAIN), responses=answer(PLAIN).responses * 2),
    ],
)
def test_other_answers_are_not_of_the_shape(message: FetchResponse) -> None:
    assert shape_of(17).match_response(memoryview(answer_frame(message, 17, 5))[4:]) is None


def test_a_length_that_no_number_has_is_not_of_the_shape() -> None:
    frame = bytearray(answer_frame(answer(PLAIN), 17, 5)[4:])
    at = frame.index(b"some records") - 1
    frame[at : at + 6] = b"\xff" * 6
    with pytest.raises(ProtocolViolation):
        decode_response(FetchResponse, 17, memoryview(frame))
    assert shape_of(17).match_response(memoryview(frame)) is None

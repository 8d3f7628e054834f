"""The common shape of one producer's Produce requests to one topic, which is decoded only once.

A producer's requests with one partition differ only in correlation id, partition and records. A
`ProduceShape` compares the other bytes instead of decoding them, and packs the response to an
append that was not refused. Both layouts come from the compiled codec, so this module defines no
second codec. Frames of any other shape are left to the codec.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final, Self

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.compile import is_flexible
from kafkapy.protocol.headers import RequestHeader, encode_request, encode_response
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkapy.protocol.primitives import compact_bytes

ACKS: Final = (-1, 0, 1)
"""The valid values of acks. A request with any other value is refused."""
FIRST_VERSION: Final = 5  # before it, a response has no log start offset
FIRST_VERSION_WITH_IDS: Final = 13

_PRODUCE: Final = int(ApiKey.PRODUCE)
_PREFIX_AT: Final = 8  # after api key, version and correlation id
_INDEX_SIZE: Final = 4
_KEY_VERSION_CORRELATION: Final = Layout(">hhi")
_INDEX_AND_SIZE: Final = Layout(">ii")
_INDEX: Final = Layout(">i")
_NO_TAGS: Final = memoryview(b"\0\0\0")  # of the partition, the topic and the request

# Variable fields of a response are located by values that no UTF-8 string contains.
_SIZE_AND_CORRELATION: Final = 8
_ROW: Final = Layout(">ihqqq")  # index, error code, base offset, log append time, log start offset
_MARKS: Final = (
    0x5A17_C3E1,
    0,
    0x61D2_77A0_13F5_9C48,
    0x2B80_E6D4_5C91_37AF,
    0x7C05_98F2_4B6E_D1A3,
)
_THROTTLE_TIME: Final = Layout(">i")
_THROTTLE_TIME_MARK: Final = 0x4E93_B7D5


class ProduceShape:
    """The shape of requests with one topic and one partition that differ only in correlation id,
    index and records."""

    __slots__ = (
        "_end",
        "_head",
        "_index_at",
        "_is_flexible",
        "_prefix",
        "_response",
        "_tail",
        "acks",
        "timeout_ms",
        "topic",
        "topic_id",
        "version",
    )  # fmt: skip

    def __init__(self, header: RequestHeader, request: ProduceRequest) -> None:
        """Take the shape of `request`, which must have one topic and one partition; `of` checks
        this. A topic id keeps the name that it had at the time of `request`.
        """
        topic = request.topic_data[0]
        self.topic = topic.name
        by_id = header.api_version >= FIRST_VERSION_WITH_IDS
        self.topic_id = topic.topic_id if by_id else None
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.version = version = header.api_version
        self._is_flexible = is_flexible(ProduceRequest, version)
        bare = ProduceRequest(
            transactional_id=request.transactional_id,
            acks=request.acks,
            timeout_ms=request.timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_data=[PartitionProduceData(index=0, records=b"")],
                )
            ],
        )
        # After the index: an i32 of 0, or a compact length of 1 byte and three empty tag sections.
        frame = encode_request(bare, version, 0, header.client_id)[4:]
        self._prefix = frame[_PREFIX_AT : -_INDEX_SIZE - 4]
        self._index_at = _PREFIX_AT + len(self._prefix)
        self._prepare_response(version, topic.topic_id)

    def _prepare_response(self, version: int, topic_id: Uuid) -> None:
        index, error, base_offset, log_append_time, log_start_offset = _MARKS
        row = PartitionProduceResponse(
            index=index,
            error_code=error,
            base_offset=base_offset,
            log_append_time_ms=log_append_time,
            log_start_offset=log_start_offset,
        )
        response = ProduceResponse(
            responses=[
                TopicProduceResponse(name=self.topic, topic_id=topic_id, partition_responses=[row])
            ],
            throttle_time_ms=_THROTTLE_TIME_MARK,
        )
        whole = b"".join(encode_response(response, ApiKey.PRODUCE, version, 0))
        self._head, _, rest = whole[_SIZE_AND_CORRELATION:].partition(_ROW.pack(*_MARKS))
        self._tail, _, self._end = rest.partition(_THROTTLE_TIME.pack(_THROTTLE_TIME_MARK))
        head, tail, end = len(self._head), len(self._tail), len(self._end)
        self._response = Layout(f">ii{head}sihqqq{tail}si{end}s")

    @classmethod
    def of(cls, frame: memoryview, header: RequestHeader, request: ProduceRequest) -> Self | None:
        """The shape of a request; None if it has another shape."""
        topics = request.topic_data
        if header.api_version < FIRST_VERSION or len(topics) != 1:
            return None
        if len(topics[0].partition_data) != 1 or request.acks not in ACKS:
            return None
        shape = cls(header, request)
        # No match: tagged fields, or an encoding that is not the shortest.
        return shape if shape.match(frame) is not None else None

    def match(self, frame: memoryview) -> tuple[int, int, memoryview] | None:
        """(correlation id, partition, records) of a frame of this shape, None for any other."""
        at = self._index_at
        if frame[_PREFIX_AT:at] != self._prefix:
            return None
        key, version, correlation_id = _KEY_VERSION_CORRELATION.unpack_from(frame)
        if key != _PRODUCE or version != self.version:
            return None
        if self._is_flexible:
            return self._match_flexible(frame, correlation_id)
        if len(frame) < at + 8:
            return None
        index, size = _INDEX_AND_SIZE.unpack_from(frame, at)
        at += 8
        return (correlation_id, index, frame[at:]) if len(frame) - at == size else None

    def _match_flexible(
        self, frame: memoryview, correlation_id: int
    ) -> tuple[int, int, memoryview] | None:
        at, end = self._index_at + _INDEX_SIZE, len(frame) - 3
        if end <= at or frame[end:] != _NO_TAGS:
            return None
        (index,) = _INDEX.unpack_from(frame, self._index_at)
        records = compact_bytes(frame, at, end)
        return None if records is None else (correlation_id, index, records)

    def response(
        self,
        correlation_id: int,
        index: int,
        error_code: int,
        base_offset: int,
        log_append_time: int,
        log_start_offset: int,
        throttle_time_ms: int,
    ) -> bytes:
        """The whole frame of a response, size prefix first: the offsets of the records, or an error
        that occurred after the append."""
        layout = self._response
        return layout.pack(
            layout.size - 4, correlation_id, self._head, index, error_code, base_offset,
            log_append_time, log_start_offset, self._tail, throttle_time_ms, self._end,
        )  # fmt: skip

"""The common shape of the fetches in one follower's session, which is decoded only once.

Under load, each request of a follower's session names one partition, that of the last received
records, and each response has records of one partition. Such requests and responses differ in a few
numbers at fixed positions. A `FetchShape` compares the other bytes instead of decoding them. The
leader matches requests and packs responses; the follower packs requests and matches responses. The
layouts come from the compiled codec, so this module defines no second codec. Frames of any other
shape are left to the codec.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final, NamedTuple, Self

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import RequestHeader, encode_request, encode_response
from kafkapy.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafkapy.protocol.primitives import Buffer, compact_bytes, uvarint

FIRST_VERSION: Final = 13  # before it, topics have names, which vary in length

_SIZE: Final = 4
_JOINED_MAX: Final = 4096  # bytes of records whose copy costs less than a write of several buffers
_SESSION_EPOCH: Final = Layout(">i")
_REQUEST_ROW: Final = Layout(">iiqiqi")
_RESPONSE_ROW: Final = Layout(">ihqqq")  # index, error code, high watermark, last stable, log start

# Variable fields are located by values that occur nowhere else in these messages.
_EPOCH_MARK: Final = 0x5A17_C3E1
_TOPIC_MARK: Final = Uuid(bytes.fromhex("c3e15a1761d277a013f59c482b80e6d4"))
_REQUEST_MARKS: Final = (
    0x2F81_6D03,
    0x1C55_9E27,
    0x61D2_77A0_13F5_9C48,
    0x3B09_F4C6,
    0x2B80_E6D4_5C91_37AF,
    0x7E12_A85D,
)
_RESPONSE_MARKS: Final = (
    0x2F81_6D03,
    0,
    0x61D2_77A0_13F5_9C48,
    0x2B80_E6D4_5C91_37AF,
    0x7C05_98F2_4B6E_D1A3,
)


class RequestRow(NamedTuple):
    """The only partition of a request."""

    correlation_id: int
    session_epoch: int
    topic_id: bytes
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class ResponseRow(NamedTuple):
    """The only partition of a response without errors. `records` is a view of the frame."""

    correlation_id: int
    topic_id: bytes
    partition: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: memoryview


_new = tuple.__new__  # half the time of the class's own


class FetchShape:
    """The shape of one session's requests and responses with one partition."""

    __slots__ = (
        "_request",
        "_request_parts",
        "_response",
        "_response_parts",
        "_response_tail",
        "_sized_request",
        "_sized_response",
        "session_id",
        "version",
    )  # fmt: skip

    def __init__(self, header: RequestHeader, request: FetchRequest) -> None:
        """Take the parts of `request` that are the same in its whole session."""
        self.version = header.api_version
        self.session_id = request.session_id
        self._prepare_request(header, request)
        self._prepare_response()

    def _prepare_request(self, header: RequestHeader, request: FetchRequest) -> None:
        index, leader_epoch, offset, fetched_epoch, start_offset, max_bytes = _REQUEST_MARKS
        row = FetchPartition(
            partition=index,
            current_leader_epoch=leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=fetched_epoch,
            log_start_offset=start_offset,
            partition_max_bytes=max_bytes,
        )
        marked = FetchRequest(
            replica_id=request.replica_id,
            replica_state=request.replica_state,
            max_wait_ms=request.max_wait_ms,
            min_bytes=request.min_bytes,
            max_bytes=request.max_bytes,
            isolation_level=request.isolation_level,
            session_id=request.session_id,
            session_epoch=_EPOCH_MARK,
            topics=[FetchTopic(topic_id=_TOPIC_MARK, partitions=[row])],
            rack_id=request.rack_id,
        )
        frame = encode_request(marked, self.version, 0, header.client_id)[_SIZE:]
        # Searched from the end: the client id before the session epoch may have any bytes.
        before_topic, _, rest = frame.rpartition(_TOPIC_MARK)
        before_epoch, _, after_epoch = before_topic.rpartition(_SESSION_EPOCH.pack(_EPOCH_MARK))
        before_row, _, tail = rest.partition(_REQUEST_ROW.pack(*_REQUEST_MARKS))
        parts = before_epoch[:4], before_epoch[8:], after_epoch, before_row, tail
        self._request_parts = parts
        head, session, topics, partitions, end = map(len, parts)
        fields = f"{head}si{session}si{topics}s16s{partitions}siiqiqi{end}s"  # as in _ASKED
        self._request, self._sized_request = Layout(f">{fields}"), Layout(f">i{fields}")

    def _prepare_response(self) -> None:
        index, error, high_watermark, last_stable_offset, log_start_offset = _RESPONSE_MARKS
        row = PartitionData(
            partition_index=index,
            error_code=error,
            high_watermark=high_watermark,
            last_stable_offset=last_stable_offset,
            log_start_offset=log_start_offset,
            aborted_transactions=None,
            records=b"",
        )
        response = FetchResponse(
            session_id=self.session_id,
            responses=[FetchableTopicResponse(topic_id=_TOPIC_MARK, partitions=[row])],
        )
        frame = b"".join(encode_response(response, ApiKey.FETCH, self.version, 0))[_SIZE:]
        head, _, rest = frame.partition(_TOPIC_MARK)
        before_row, _, after_row = rest.partition(_RESPONSE_ROW.pack(*_RESPONSE_MARKS))
        # After the row: a compact length of 1 byte, then the tag sections of the partition, the
        # topic and the response.
        before_records, self._response_tail = after_row[:-4], after_row[-3:]
        parts = head[4:], before_row, before_records
        self._response_parts = parts
        session, partitions, records = map(len, parts)
        fields = f"i{session}s16s{partitions}sihqqq{records}s"  # as in _ANSWERED
        self._response, self._sized_response = Layout(f">{fields}"), Layout(f">i{fields}")

    @classmethod
    def of(cls, frame: memoryview, header: RequestHeader, request: FetchRequest) -> Self | None:
        """The shape of a session's request; None if it has another shape."""
        if header.api_version < FIRST_VERSION or request.session_epoch <= 0:
            return None
        shape = cls(header, request)
        # No match: other rows, tagged fields, or an encoding that is not the shortest.
        return shape if shape.match(frame) is not None else None

    def match(self, frame: memoryview) -> RequestRow | None:
        """The partition in a request of this shape, None for any other frame."""
        if len(frame) != self._request.size:
            return None
        (head, correlation_id, session, session_epoch, topics, topic_id, partitions, index,
         leader_epoch, offset, fetched_epoch, start_offset, max_bytes, end,
         ) = self._request.unpack(frame)  # fmt: skip
        if (head, session, topics, partitions, end) != self._request_parts:
            return None
        return _new(
            RequestRow,
            (correlation_id, session_epoch, topic_id, index, leader_epoch, offset, fetched_epoch,
             start_offset, max_bytes),
        )  # fmt: skip

    def request(
        self,
        correlation_id: int,
        session_epoch: int,
        topic_id: bytes,
        partition: int,
        current_leader_epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        log_start_offset: int,
        max_bytes: int,
    ) -> bytes:
        """The frame of a request, its size first."""
        head, session, topics, partitions, end = self._request_parts
        layout = self._sized_request
        return layout.pack(
            layout.size - _SIZE, head, correlation_id, session, session_epoch, topics, topic_id,
            partitions, partition, current_leader_epoch, fetch_offset, last_fetched_epoch,
            log_start_offset, max_bytes, end,
        )  # fmt: skip

    def response(
        self,
        correlation_id: int,
        topic_id: bytes,
        partition: int,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        records: bytes,
    ) -> list[Buffer]:
        """The frame of a response, its size first, as buffers."""
        session, partitions, before_records = self._response_parts
        length = uvarint(len(records) + 1)
        size = self._response.size + len(length) + len(records) + len(self._response_tail)
        head = self._sized_response.pack(
            size, correlation_id, session, topic_id, partitions, partition, 0, high_watermark,
            last_stable_offset, log_start_offset, before_records,
        )  # fmt: skip
        if len(records) > _JOINED_MAX:
            return [head + length, records, self._response_tail]
        return [b"".join((head, length, records, self._response_tail))]

    def match_response(self, frame: memoryview) -> ResponseRow | None:
        """The partition in a response of this shape, None for any other frame."""
        at = self._response.size
        end = len(frame) - 3
        if end <= at or frame[end:] != self._response_tail:
            return None
        (correlation_id, session, topic_id, partitions, index, error, high_watermark,
         last_stable_offset, log_start_offset, before_records,
         ) = self._response.unpack_from(frame)  # fmt: skip
        if error or (session, partitions, before_records) != self._response_parts:
            return None
        records = compact_bytes(frame, at, end)
        if records is None:
            return None
        return _new(
            ResponseRow,
            (correlation_id, topic_id, index, high_watermark, last_stable_offset,
             log_start_offset, records),
        )  # fmt: skip

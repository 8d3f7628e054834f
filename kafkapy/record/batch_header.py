"""The header of a record batch: 61 bytes, read by one `Struct.unpack_from` (KIP-98, format v2).

Hot file: produce, fetch and recovery read every batch through `read_header`. Nothing here reads
records. The first 16 bytes (base offset, length, leader epoch) lie outside the CRC: a leader
replaces them by `first_16_bytes` and keeps the rest of the received bytes.

Messages of the formats v0 and v1 are read into the same `BatchHeader`: see `_read_legacy`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.codec import Codec

Buffer = bytes | bytearray | memoryview

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12  # base offset and batch length, which batch_length does not count
MAGIC_OFFSET: Final = 16
BATCH_LENGTH_OFFSET: Final = 8
CRC_OFFSET: Final = 17
ATTRIBUTES_OFFSET: Final = 21  # the CRC covers the bytes from here on
MAGIC: Final = 2

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1
UNKNOWN_COUNT: Final = -1  # record_count of a v0/v1 message: a wrapper has no count

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
_FLAGS_OFFSET: Final = 22  # the low byte of the attributes
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_FIRST_16: Final = struct.Struct(">qii")
LEGACY: Final = struct.Struct(">qiIbb")
_INT64: Final = struct.Struct(">q")
LEGACY_SIZE_MIN: Final = {0: 26, 1: 34}
_INT32_MAX: Final = 2**31 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


class TimestampType(IntEnum):
    """The meaning of a record's timestamp; `label` is the word Kafka prints for it."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1

    @property
    def label(self) -> str:
        return _TIMESTAMP_LABELS[self]


_TIMESTAMP_LABELS: Final = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


class BatchHeader(NamedTuple):
    """The fields of the header, in wire order. Times in ms, sizes in bytes.

    `partition_leader_epoch`, `producer_id`, `producer_epoch`, `base_sequence`: -1 when not set.
    For a v0/v1 message both timestamps are the message's (-1 in v0), `base_offset` is its offset
    (of a compressed wrapper: that of its *last* inner message) and `record_count` is -1.
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after this batch, also after compaction has removed some or all records."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """The codec. Raises ApiError INVALID_RECORD for the ids 5 to 7, which no codec has."""
        try:
            return Codec(self.attributes & CODEC_MASK)
        except ValueError:
            code = self.attributes & CODEC_MASK
            raise ApiError(ErrorCode.INVALID_RECORD, f"Unknown compression codec {code}") from None

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the time after which tombstones and markers are removed."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.has_delete_horizon else None

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; -1 when the producer is not idempotent."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_to_sequence(self.base_sequence, self.last_offset_delta)


def add_to_sequence(sequence: int, increment: int) -> int:
    """`sequence + increment`, 2^31-1 followed by 0 (`DefaultRecordBatch.incrementSequence`)."""
    return (sequence + increment) & _INT32_MAX


_unpack = HEADER.unpack_from
_new = tuple.__new__


def read_header(buf: Buffer, position: int = 0) -> BatchHeader:
    """The header of the batch or legacy message at `position`. Its records may be missing.

    Raises:
        ApiError: CORRUPT_MESSAGE when the bytes are too few, or cannot begin a batch.
    """
    try:
        header: BatchHeader = _new(BatchHeader, _unpack(buf, position))
    except struct.error:
        return _read_legacy(buf, position)
    if header.magic != MAGIC:
        return _read_legacy(buf, position)
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        raise _too_small(header.batch_length)
    return header


def _read_legacy(buf: Buffer, position: int) -> BatchHeader:
    """One v0/v1 message as a batch of one record (`AbstractLegacyRecordBatch`)."""
    try:
        offset, size, crc, magic, attributes = LEGACY.unpack_from(buf, position)
        if magic == MAGIC:
            raise struct.error
        if magic not in LEGACY_SIZE_MIN:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"Record batch has the unknown magic {magic}")
        if size + LOG_OVERHEAD < LEGACY_SIZE_MIN[magic]:
            raise _too_small(size)
        timestamp = _INT64.unpack_from(buf, position + 18)[0] if magic else NO_TIMESTAMP
    except struct.error:
        left = len(buf) - position
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"{left} bytes are too few for a batch header"
        ) from None
    # Bits above the timestamp type have no meaning before v2, and must not look like v2's flags.
    attributes &= CODEC_MASK | (LOG_APPEND_TIME_BIT if magic else 0)
    return BatchHeader(
        offset, size, NO_LEADER_EPOCH, magic, crc, attributes, 0, timestamp, timestamp,
        NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, UNKNOWN_COUNT,
    )  # fmt: skip


def _too_small(length: int) -> ApiError:
    return ApiError(
        ErrorCode.CORRUPT_MESSAGE,
        f"Record batch is corrupted: its length {length} is below the least one can have",
    )


def iter_headers(
    buf: Buffer, position: int = 0, end: int | None = None
) -> Iterator[tuple[int, BatchHeader]]:
    """`(position, header)` of each *whole* batch in [position, end); a cut-off tail is left out.

    Raises:
        ApiError: CORRUPT_MESSAGE on reaching bytes that cannot begin a batch.
    """
    end = len(buf) if end is None else end
    while (size := whole_batch_size(buf, position, end)) is not None:
        yield position, read_header(buf, position)
        position += size


def whole_batch_size(buf: Buffer, position: int, end: int) -> int | None:
    """Bytes of the batch at `position`; None when it does not end by `end`.

    Raises:
        ApiError: CORRUPT_MESSAGE when the length is one that no batch can have.
    """
    if end - position < MAGIC_OFFSET + 1:
        return None
    length: int = _LENGTH.unpack_from(buf, position + 8)[0]
    if length < LEGACY_SIZE_MIN[0] - LOG_OVERHEAD:
        raise _too_small(length)
    size = length + LOG_OVERHEAD
    return size if position + size <= end else None


_LENGTH: Final = struct.Struct(">i")


def transactional_header(buf: Buffer) -> BatchHeader | None:
    """The header of one whole batch that is part of a transaction; None for other bytes."""
    if (
        len(buf) < HEADER.size
        or buf[MAGIC_OFFSET] != MAGIC
        or not buf[_FLAGS_OFFSET] & TRANSACTIONAL_BIT
    ):
        return None
    header: BatchHeader = _new(BatchHeader, _unpack(buf, 0))
    return header if header.size == len(buf) else None


def first_16_bytes(base_offset: int, batch_length: int, leader_epoch: int) -> bytes:
    """The bytes that a leader sets: those before the magic, outside the CRC."""
    return _FIRST_16.pack(base_offset, batch_length, leader_epoch)

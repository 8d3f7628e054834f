"""Validation of a batch before a leader appends it (`LogValidator`, `UnifiedLog`).

Hot file: every produced batch passes `prepare_client_batch`. Its fast path reads the header once,
computes the CRC over the received bytes and compares header fields: 2 us plus the CRC, for any
number of records. `rewriting` has the code that copies, decompresses or reads records.

The caller then writes `first_16_bytes(...)` and `prepared.records[16:]`, without a copy.
"""

from __future__ import annotations

import struct
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record import rewriting
from kafkapy.record.batch_crc import crc_error, validate_crc
from kafkapy.record.batch_header import (
    ATTRIBUTES_OFFSET,
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_OFFSET,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    iter_headers,
)
from kafkapy.record.batch_rules import (
    COMPACTED_RECORDS_MAX,
    COMPRESSION_RATIO_MAX,
    NO_LIMIT,
    RECORD_BYTES_MIN,
    RECORDS_MAX,
    BatchRules,
    ByteBudget,
    NeedsThread,
    PreparedBatch,
    check_timestamp,
    too_large,
    too_many_for_cleaner,
    too_many_records,
)
from kafkapy.record.checksum import crc32c
from kafkapy.record.codec import Codec

PRODUCE_VERSION_V2_ONLY: Final = 3  # from here on: one v2 batch a partition (KIP-98)
PRODUCE_VERSION_ZSTD: Final = 7  # from here on no version differs in its batches (KIP-110)
FAST_BYTES_MAX: Final = 4096

_unpack = HEADER.unpack_from
_new = tuple.__new__
_LAST_CODEC: Final = max(Codec)
_BROKER_ONLY_BITS: Final = CONTROL_BIT | DELETE_HORIZON_BIT


def prepare_client_batch(
    records: memoryview,
    rules: BatchRules,
    now_ms: int,
    produce_version: int = PRODUCE_VERSION_ZSTD,
    fast_only: bool = False,
    budget: ByteBudget | None = None,
) -> PreparedBatch:
    """Check the records of one partition of a Produce request against all rules for batches.

    Raises:
        NeedsThread: `fast_only` is set, and the batch must be decompressed, or more than
            FAST_BYTES_MAX must be read or compressed.
        ApiError: CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP,
            UNSUPPORTED_COMPRESSION_TYPE or INVALID_RECORD (perhaps InvalidRecords).
    """
    if produce_version < PRODUCE_VERSION_V2_ONLY and _is_legacy(records):
        if fast_only and (len(records) > FAST_BYTES_MAX or _has_compressed(records)):
            raise NeedsThread(rules, now_ms, produce_version)
        return rewriting.convert_up(records, rules, now_ms, budget)
    header = _single_batch(records)
    base_offset, _, _, _, _, attributes, last_delta, _, _, producer_id, _, sequence, count = header
    if base_offset != 0:
        raise _invalid(f"The base offset of a produced batch is {base_offset}, not 0")
    if len(records) > rules.max_message_bytes:
        raise too_large(len(records), rules)
    if crc32c(records[ATTRIBUTES_OFFSET:]) != header.crc:
        raise crc_error(header, records)
    if count <= 0 or count != last_delta + 1:
        raise _invalid(f"Batch of {count} records has the last offset delta {last_delta}")
    if attributes & _BROKER_ONLY_BITS:
        if attributes & CONTROL_BIT:
            raise _invalid("Clients are not allowed to write control records")
        # Kafka accepts it, and its cleaner may then remove tombstones before they were read.
        raise _invalid("Only the log cleaner sets a delete horizon")
    if producer_id != NO_PRODUCER_ID and sequence < 0:
        raise _invalid(f"Producer {producer_id} sent the base sequence {sequence}")
    if attributes & LOG_APPEND_TIME_BIT:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            "Producers may not set the timestamp type to LogAppendTime",
        )
    if produce_version < PRODUCE_VERSION_ZSTD and attributes & CODEC_MASK == Codec.ZSTD:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce v{produce_version} may not use zstd",
        )
    reads = rules.compacted or header.max_timestamp < header.base_timestamp
    if fast_only and (reads or rules.codec is not None):
        codec = attributes & CODEC_MASK
        if (reads or rules.codec != codec) and (codec or len(records) > FAST_BYTES_MAX):
            raise NeedsThread(rules, now_ms, produce_version)
    return _prepare(header, records, rules, now_ms, budget)


def prepare_internal_batch(records: Buffer, rules: BatchRules, now_ms: int) -> PreparedBatch:
    """As `prepare_client_batch`, for batches of this broker's coordinators: also control batches,
    and any sequence.

    Raises:
        ApiError: as `prepare_client_batch`.
    """
    header = _single_batch(records)
    if len(records) > rules.max_message_bytes:
        raise too_large(len(records), rules)
    validate_crc(records, 0, header)
    return _prepare(header, records, rules, now_ms)


def _prepare(
    header: BatchHeader,
    records: Buffer,
    rules: BatchRules,
    now_ms: int,
    budget: ByteBudget | None = None,
) -> PreparedBatch:
    """Apply the topic's config to a valid batch. The fast path ends at the last line."""
    codec = header.attributes & CODEC_MASK
    if codec > _LAST_CODEC:
        raise _invalid(f"Unknown compression codec {codec}")
    count = header.record_count
    payload_bytes = len(records) - HEADER_SIZE
    if (
        count * RECORD_BYTES_MIN > payload_bytes * COMPRESSION_RATIO_MAX[codec]
        or count > RECORDS_MAX
    ):
        raise too_many_records(count, payload_bytes)
    # Sarama before 1.45.1 sends -1. (Kafka computes the maximum of each batch.)
    lacks_maximum = header.max_timestamp < header.base_timestamp and not rules.log_append_time
    if lacks_maximum:
        maximum = rewriting.max_timestamp(records, header, budget)
        header = header._replace(max_timestamp=maximum)
    is_bounded = (
        rules.timestamp_after_max_ms != NO_LIMIT or rules.timestamp_before_max_ms != NO_LIMIT
    )
    if is_bounded and not rules.log_append_time:
        check_timestamp(header.base_timestamp, rules, now_ms)
        check_timestamp(header.max_timestamp, rules, now_ms)
    if rules.compacted:
        if count > COMPACTED_RECORDS_MAX:
            raise too_many_for_cleaner(count)
        rewriting.check_keys(records, header, budget)
    recompress = rules.codec is not None and rules.codec != codec and not header.is_control
    if recompress or rules.log_append_time or lacks_maximum:
        return rewriting.rewrite(records, header, rules, now_ms, budget)
    return PreparedBatch(header, records, NO_TIMESTAMP)


def _single_batch(records: Buffer) -> BatchHeader:
    """The header of the one whole v2 batch that `records` must be."""
    try:
        header: BatchHeader = _new(BatchHeader, _unpack(records))
    except struct.error:
        raise _invalid(f"{len(records)} bytes of records hold no batch") from None
    size = header.batch_length + LOG_OVERHEAD
    if header.magic != MAGIC:
        if header.magic in (0, 1):
            raise _invalid(f"Batches need the magic 2: this one has {header.magic}")
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {header.magic}")
    if size != len(records):
        # As in Kafka's iterator: an incomplete batch is not a batch.
        if size > len(records):
            raise _invalid(f"The batch length says {size} bytes, {len(records)} are there")
        if size >= HEADER_SIZE:
            raise _invalid("Exactly one record batch per partition is allowed")
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"Record size {size} is less than the minimum {HEADER_SIZE}"
        )
    return header


def _is_legacy(records: Buffer) -> bool:
    return len(records) > MAGIC_OFFSET + 1 and records[MAGIC_OFFSET] < MAGIC


def _has_compressed(records: Buffer) -> bool:
    """Whether any message of a set is compressed: the first one need not be."""
    return any(header.attributes & CODEC_MASK for _, header in iter_headers(records))


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, message)

"""The slow paths of an append: check records, recompress, set append times, convert up.

`validation` uses these only if the topic's config, or a client older than 0.11, requires it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import no_pause
from kafkapy.record.batch_header import (
    CODEC_MASK,
    HEADER_SIZE,
    INT64_MAX,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    iter_headers,
    read_header,
)
from kafkapy.record.batch_rules import (
    COMPRESSION_RATIO_MAX,
    RECORD_BYTES_MIN,
    BatchRules,
    ByteBudget,
    InvalidRecords,
    PreparedBatch,
    check_timestamp,
    too_large,
    too_many_records,
)
from kafkapy.record.builder import RecordData, build_batch, write_header
from kafkapy.record.codec import Codec
from kafkapy.record.compression import compress
from kafkapy.record.legacy import read_messages, validate_message_crc
from kafkapy.record.record_check import check_records
from kafkapy.record.records import records_view
from kafkapy.record.varint import read_varint

_NO_KEY: Final = "Compacted topic cannot accept message without key"
_ERRORS_SHOWN_MAX: Final = 3
_ERRORS_SENT_MAX: Final = (
    1000  # each takes space in the response; a batch may have a million records
)

PRODUCED_BYTES_MAX: Final = 64 << 20
"""The size limit of a produced batch that must be decompressed: 64 times the default of
`max.message.bytes`."""
CONVERTED_BYTES_MAX: Final = 16 << 20
"""The size limit of a decompressed message set from before 0.11. Each message is converted by
itself, and counts as `_MESSAGE_BYTES` more than its key and value. That is at most a second of
work."""
_MESSAGE_BYTES: Final = 64


def rewrite(
    records: Buffer,
    header: BatchHeader,
    rules: BatchRules,
    now_ms: int,
    budget: ByteBudget | None = None,
) -> PreparedBatch:
    """A copy of the batch with this header, the topic's codec and, for LogAppendTime, the time
    `now_ms`.

    Control batches keep their codec: they are never compressed.

    Raises:
        ApiError: CORRUPT_MESSAGE (does not decompress), MESSAGE_TOO_LARGE (once recompressed),
            INVALID_RECORD (too few bytes for its records).
    """
    attributes = header.attributes
    codec = header.codec if rules.codec is None or header.is_control else rules.codec
    if codec is header.codec:
        batch = bytearray(records)
    else:
        payload = _payload(records, header, budget)
        if header.record_count * RECORD_BYTES_MIN > len(payload):
            raise too_many_records(header.record_count, len(payload))
        batch = bytearray(HEADER_SIZE)
        batch += compress(codec, payload, rules.level)
        attributes = attributes & ~CODEC_MASK | codec
        if len(batch) > rules.max_message_bytes:
            raise too_large(len(batch), rules)
    if rules.log_append_time:
        attributes |= LOG_APPEND_TIME_BIT
        header = header._replace(max_timestamp=now_ms)
    header = write_header(batch, header._replace(attributes=attributes))
    return PreparedBatch(header, batch, now_ms if rules.log_append_time else NO_TIMESTAMP)


def check_keys(records: Buffer, header: BatchHeader, budget: ByteBudget | None = None) -> None:
    """Check each record completely: it needs a key, and its index as its offset delta.

    Raises:
        ApiError: InvalidRecords (keys), INVALID_RECORD (not records), CORRUPT_MESSAGE.
    """
    payload = _payload(records, header, budget, header.record_count)
    without_key = check_records(payload, header)
    if without_key:
        raise _keys_missing(without_key)


def max_timestamp(records: Buffer, header: BatchHeader, budget: ByteBudget | None = None) -> int:
    """The greatest timestamp of the records, of which each is checked completely.

    Raises:
        ApiError: INVALID_RECORD (not records), CORRUPT_MESSAGE.
    """
    payload = _payload(records, header, budget, header.record_count)
    check_records(payload, header)
    deltas, at = [], 0
    for _ in range(header.record_count):
        size, at = read_varint(payload, at)
        deltas.append(read_varint(payload, at + 1)[0])  # behind the unused attributes byte
        at += size
    return header.base_timestamp + max(deltas)


def _payload(
    records: Buffer, header: BatchHeader, budget: ByteBudget | None, read_records: int = 0
) -> bytes:
    """The records section, decompressed, as `records_view` returns it."""
    try:
        payload = records_view(records, header, max_bytes=PRODUCED_BYTES_MAX)
    except ApiError:
        if budget is not None:
            budget.spend(_failed_bytes(header, PRODUCED_BYTES_MAX))
        raise
    if budget is not None:
        budget.spend(len(payload), min(read_records, len(payload) // RECORD_BYTES_MIN))
    return payload


def _failed_bytes(header: BatchHeader, limit: int) -> int:
    """The most bytes, up to `limit`, that were decompressed before a batch was refused. To fail at
    the limit takes as long as to succeed."""
    return min(header.size * COMPRESSION_RATIO_MAX[header.attributes & CODEC_MASK], limit)


def _keys_missing(indexes: list[int]) -> InvalidRecords:
    shown = ", ".join(f"record {index}: {_NO_KEY}" for index in indexes[:_ERRORS_SHOWN_MAX])
    return InvalidRecords(
        ErrorCode.INVALID_RECORD,
        f"{len(indexes)} records have been rejected, at most {_ERRORS_SHOWN_MAX} shown: {shown}",
        [(index, _NO_KEY) for index in indexes[:_ERRORS_SENT_MAX]],
    )


def convert_up(
    records: Buffer, rules: BatchRules, now_ms: int, budget: ByteBudget | None = None
) -> PreparedBatch:
    """The v0/v1 message set of a Produce v0-2 request as one v2 batch with the topic's codec.

    Raises:
        ApiError: CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP, INVALID_RECORD (perhaps
            InvalidRecords).
    """
    codec, end = Codec.NONE, 0
    for position, header in iter_headers(records):
        if header.magic == MAGIC:
            raise ApiError(ErrorCode.INVALID_RECORD, "A message set mixes formats before v2 and v2")
        if header.size > rules.max_message_bytes:
            raise too_large(header.size, rules)
        validate_message_crc(records, header, position)
        if header.is_log_append_time:
            raise ApiError(
                ErrorCode.INVALID_TIMESTAMP,
                "Producers may not set the timestamp type to LogAppendTime",
            )
        codec = header.codec or codec
        end = position + header.size
    if end == 0 or end != len(records):
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "A message set is empty or cut off")
    without_key: list[int] = []
    batch = build_batch(
        _rows(records, rules, now_ms, without_key, budget),
        codec=codec if rules.codec is None else rules.codec,
        level=rules.level,
        log_append_time=now_ms if rules.log_append_time else None,
    )
    if without_key:
        raise _keys_missing(without_key)
    if len(batch) > rules.max_message_bytes:
        raise too_large(len(batch), rules)
    log_append_time = now_ms if rules.log_append_time else NO_TIMESTAMP
    return PreparedBatch(read_header(batch), batch, log_append_time)


def _rows(
    records: Buffer,
    rules: BatchRules,
    now_ms: int,
    without_key: list[int],
    budget: ByteBudget | None,
) -> Iterator[RecordData]:
    index, left_bytes = 0, CONVERTED_BYTES_MAX
    pause = no_pause if budget is None else budget.pause
    try:
        for position, header in iter_headers(records):
            for message in read_messages(records, header, position, left_bytes):
                _, timestamp, _, key, value, _ = message
                # Deltas between other timestamps may need more than 64 bits, which v2 cannot hold.
                if not NO_TIMESTAMP <= timestamp < INT64_MAX:
                    raise ApiError(ErrorCode.INVALID_TIMESTAMP, f"Invalid timestamp {timestamp}")
                if key is None and rules.compacted:
                    without_key.append(index)
                if not rules.log_append_time:
                    check_timestamp(timestamp, rules, now_ms)
                left_bytes -= _MESSAGE_BYTES + len(key or b"") + len(value or b"")
                if left_bytes < 0:
                    raise ApiError(
                        ErrorCode.CORRUPT_MESSAGE,
                        f"A message set unfolds to more than {CONVERTED_BYTES_MAX} bytes",
                    )
                yield RecordData(key, value, timestamp)
                index += 1
            pause()
    except ApiError:
        left_bytes -= _failed_bytes(header, left_bytes)
        raise
    finally:
        if budget is not None:
            budget.spend(CONVERTED_BYTES_MAX - left_bytes)

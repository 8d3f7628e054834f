"""Encodes an operation's batches, and normalizes the batches that a broker returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from dev.differential.operations import Batch, ProduceOld, Row
from kafkapy.record.batch_header import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    iter_headers,
    read_header,
)
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.compression import decompress
from tests.harness.storage.legacy_messages import message, wrapper

NO_PRODUCER: Final = (-1, -1)
_CONTROL_BIT: Final = 0x20


def encode(batch: Batch, now_ms: int, producer: tuple[int, int], next_sequence: int) -> bytes:
    """A v2 batch. `producer` is its id and epoch, `next_sequence` its next sequence number."""
    producer_id, epoch = producer
    made = bytearray(
        build_batch(
            [_record(row, now_ms) for row in batch.rows],
            codec=batch.codec,
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else max(0, epoch + batch.epoch_shift),
            base_sequence=-1 if producer_id < 0 else max(0, next_sequence + batch.sequence_shift),
            is_transactional=batch.is_transactional,
            is_control=batch.damage == "control",
        )
    )
    header = read_header(made)
    match batch.damage:
        case "crc":
            HEADER.pack_into(made, 0, *header._replace(crc=header.crc ^ 1))
        case "length":
            HEADER.pack_into(made, 0, *header._replace(batch_length=header.batch_length + 1))
        case "truncated":
            del made[-1:]
    return bytes(made)


def encode_old(operation: ProduceOld, now_ms: int) -> bytes:
    """Messages of magic 0 or 1, in a wrapper if they are compressed."""
    magic = 1 if operation.version == 2 else 0
    records = [_record(row, now_ms) for row in operation.rows]
    inner = b"".join(
        message(magic, i, row.key, row.value, timestamp=row.timestamp)
        for i, row in enumerate(records)
    )
    if operation.codec is Codec.NONE:
        return inner
    newest = max(row.timestamp for row in records)
    return wrapper(magic, operation.codec, inner, offset=len(records) - 1, timestamp=newest)


def observed(data: Any, label: Callable[[int], str]) -> tuple[tuple[Any, ...], ...]:
    """Rows of a log or a response, one for each whole batch.

    Producer ids are replaced by labels. The times of a control batch, which the broker chooses, are
    left out; payloads are decompressed, since compressors differ in their output.
    """
    return tuple(_rows(memoryview(data or b""), label))


def next_offset(data: Any) -> int:
    """The offset after the last whole batch."""
    *_, (_, last) = iter_headers(memoryview(data))
    return last.next_offset


def _rows(data: memoryview, label: Callable[[int], str]) -> Iterator[tuple[Any, ...]]:
    position = 0
    while len(data) - position >= HEADER_SIZE:
        header = read_header(data, position)
        size = header.batch_length + LOG_OVERHEAD
        if position + size > len(data):
            break
        payload = bytes(data[position + HEADER_SIZE : position + size])
        is_control = bool(header.attributes & _CONTROL_BIT)
        times: Sequence[int] = () if is_control else (header.base_timestamp, header.max_timestamp)
        yield (
            *(header.base_offset, header.last_offset_delta, header.partition_leader_epoch),
            *(header.attributes, *times, label(header.producer_id), header.producer_epoch),
            *(header.base_sequence, header.record_count),
            payload if header.codec is Codec.NONE else decompress(header.codec, payload),
        )
        position += size


def _record(row: Row, now_ms: int) -> RecordData:
    headers = () if row.header_bytes < 0 else (("h", b"x" * row.header_bytes),)
    return RecordData(row.key, row.value, now_ms - row.age_ms, headers)

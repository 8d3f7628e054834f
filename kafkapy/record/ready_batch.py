"""Batches that are complete except for the producer fields, and may be split into halves."""

from __future__ import annotations

from collections.abc import Iterator

from kafkapy.record.batch_header import TRANSACTIONAL_BIT, read_header
from kafkapy.record.builder import RecordData, build_batch, write_header
from kafkapy.record.records import batch_records

ReadyBatch = memoryview | bytearray
"""One whole v2 batch with at least one record. `set_producer_state` writes its producer
fields and CRC.
"""


def set_producer_state(
    batch: ReadyBatch,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool,
) -> None:
    """Write the producer fields and the CRC of a batch. May be repeated for another producer."""
    header = read_header(batch)
    attributes = header.attributes | (TRANSACTIONAL_BIT if is_transactional else 0)
    write_header(
        batch,
        header._replace(
            attributes=attributes,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        ),
    )


def split_in_two(batch: ReadyBatch) -> Iterator[bytearray]:
    """Split a batch of at least two records into two batches, in order. Neither has a producer."""
    header = read_header(batch)
    rows = [
        RecordData(row.key, row.value, row.timestamp, row.headers)
        for row in batch_records(batch, header)
    ]
    middle = len(rows) // 2
    for half in (rows[:middle], rows[middle:]):
        yield bytearray(build_batch(half, codec=header.codec))

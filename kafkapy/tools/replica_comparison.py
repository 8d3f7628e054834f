"""Compares the batches of a partition's replicas. Pure: takes fetched bytes, returns findings.

Batches are compared in lock-step up to each replica's high watermark, by last offset, size and
checksum (`ReplicaBuffer.verifyCheckSum`). Kafka compares the stored checksums of batches. Here they
are also computed, because a batch that was damaged on disk still has the right stored checksum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple
from zlib import crc32

from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.batch_header import (
    ATTRIBUTES_OFFSET,
    MAGIC,
    MAGIC_OFFSET,
    BatchHeader,
    iter_headers,
)
from kafkapy.record.checksum import crc32c
from kafkapy.record.records import batch_records


class ReplicaBatches(NamedTuple):
    """One replica's response: bytes from the common offset on, and its high watermark."""

    high_watermark: int
    records: memoryview


class Difference(NamedTuple):
    """Two replicas that differ in a batch. `offset` is the first offset that differs.

    `values` are their values of `field`: "offset", "checksum" or "size". `corrupt` has the replicas
    whose batch does not match its own CRC.
    """

    partition: TopicPartition
    field: str
    offset: int
    last_offset: int
    replicas: tuple[int, int]
    values: tuple[int, int]
    corrupt: tuple[int, ...]

    def text(self) -> str:
        """Kafka's line, without the time."""
        (a, b), (x, y) = self.replicas, self.values
        if self.field == "offset":
            return (
                f"partition {self.partition}: replica {a}'s offset {x} doesn't match replica {b}'s"
                f" offset {y}"
            )
        return (
            f"partition {self.partition} has unmatched {self.field} at offset {self.last_offset};"
            f" replica {a}'s {self.field} {x}; replica {b}'s {self.field} {y}"
        )


class Comparison(NamedTuple):
    """The compared range, and its differences."""

    next_offset: int
    batches: int
    differences: list[Difference]


class _Batch(NamedTuple):
    header: BatchHeader
    data: memoryview


def compare(
    partition: TopicPartition, start_offset: int, replicas: Mapping[int, ReplicaBatches]
) -> Comparison:
    """Compare the replicas from `start_offset` on. Stops at the first batch whose offsets differ,
    or that a replica does not have below its high watermark.
    """
    next_offset, count = start_offset, 0
    differences: list[Difference] = []
    ids = list(replicas)
    # zip ends when the first replica has no more batches.
    for row in zip(*map(_batches_below, replicas.values()), strict=False):
        pairs = list(zip(ids, row, strict=True))
        found = [each for other in pairs[1:] if (each := _compare(partition, pairs[0], other))]
        differences += found
        if any(each.field == "offset" for each in found):
            break
        count += 1
        next_offset = row[0].header.next_offset
    return Comparison(next_offset, count, differences)


def _batches_below(replica: ReplicaBatches) -> Iterator[_Batch]:
    """Whole batches below the high watermark, up to the first bytes that are not a valid batch."""
    try:
        for position, header in iter_headers(replica.records):
            if header.last_offset >= replica.high_watermark:
                return
            yield _Batch(header, replica.records[position : position + header.size])
    except ApiError:
        return


def _compare(
    partition: TopicPartition, first: tuple[int, _Batch], other: tuple[int, _Batch]
) -> Difference | None:
    replicas = first[0], other[0]
    a, b = first[1], other[1]

    def differs(field: str, x: int, y: int) -> Difference:
        pairs = ((first[0], a), (other[0], b))
        corrupt = tuple(replica for replica, each in pairs if _computed(each) != each.header.crc)
        offset, last = _first_difference(a, b), a.header.last_offset
        return Difference(partition, field, offset, last, replicas, (x, y), corrupt)

    if a.header.last_offset != b.header.last_offset:
        return differs("offset", a.header.last_offset, b.header.last_offset)
    if a.header.crc != b.header.crc:
        return differs("checksum", a.header.crc, b.header.crc)
    if a.header.size != b.header.size:
        return differs("size", a.header.size, b.header.size)
    if bytes(a.data[MAGIC_OFFSET:]) != bytes(b.data[MAGIC_OFFSET:]):
        return differs("checksum", _computed(a), _computed(b))
    return None


def _computed(batch: _Batch) -> int:
    if batch.header.magic != MAGIC:
        return crc32(batch.data[MAGIC_OFFSET:])
    return int(crc32c(batch.data[ATTRIBUTES_OFFSET:]))


def _first_difference(a: _Batch, b: _Batch) -> int:
    """The offset of the first different record, as far as both can be read."""
    offset = min(a.header.base_offset, b.header.base_offset)
    rows = zip(batch_records(a.data, a.header), batch_records(b.data, b.header), strict=False)
    with suppress(ApiError):  # a record that cannot be read is the difference
        for x, y in rows:
            if x != y:
                return min(x.offset, y.offset)
            offset = x.offset + 1
    return offset

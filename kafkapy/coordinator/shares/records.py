"""Records of `__share_group_state`, byte for byte as Kafka 4 writes them.

A snapshot is the whole state of a share partition; an update is a later change.
Kafka: `ShareSnapshotKey`, `ShareSnapshotValue`, `ShareUpdateKey`, `ShareUpdateValue`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from kafkapy.common.share_state import (
    UNKNOWN_COUNT,
    DeliveryState,
    SharePartitionKey,
    StateBatch,
    combine_batches,
)
from kafkapy.common.topic_partition import SHARE_GROUP_STATE_TOPIC
from kafkapy.coordinator.compact_fields import NO_TAGS, CompactReader, compact_array, uvarint
from kafkapy.coordinator.record_fields import I16, I32, I64, RecordReader, string_field

_BATCH: Final = Struct(">qqbh")
_COUNT_TAG: Final = 0


class RecordType(IntEnum):
    """Kinds of records: the version of their keys."""

    SNAPSHOT = 0
    UPDATE = 1


class ShareUpdate(NamedTuple):
    """Changes since the snapshot. A start offset of -1 is no change."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class ShareState(NamedTuple):
    """The state of a share partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_ms: int
    write_ms: int
    batches: tuple[StateBatch, ...] = ()

    def updated(self, update: ShareUpdate) -> ShareState:
        """The state after an update. An update that comes late does not undo a later one."""
        start_offset = max(self.start_offset, update.start_offset)
        return self._replace(
            leader_epoch=max(self.leader_epoch, update.leader_epoch),
            start_offset=start_offset,
            delivery_complete_count=self._count_after(update),
            batches=tuple(combine_batches(self.batches, update.batches, start_offset)),
        )

    def _count_after(self, update: ShareUpdate) -> int:
        """The number of completed records from the higher start offset on. The sum of start offset
        and count never decreases at a leader, so a lower one is that of a late update.
        """
        if UNKNOWN_COUNT in (self.delivery_complete_count, update.delivery_complete_count):
            return update.delivery_complete_count
        completed = max(
            state.start_offset + state.delivery_complete_count for state in (self, update)
        )
        return completed - max(self.start_offset, update.start_offset)


def encode_key(kind: RecordType, key: SharePartitionKey) -> bytes:
    """Key bytes."""
    head = I16.pack(kind) + string_field(key.group_id)
    return head + key.topic_id + I32.pack(key.partition)


def read_key(data: bytes) -> tuple[RecordType, SharePartitionKey] | None:
    """The kind and the share partition, or None if the key is of a later Kafka.

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    reader = CompactReader(data, SHARE_GROUP_STATE_TOPIC)
    version = reader.i16()
    if version not in RecordType.__members__.values():
        return None
    return RecordType(version), SharePartitionKey(reader.string(), reader.uuid(), reader.i32())


def snapshot_value(state: ShareState) -> bytes:
    """Value bytes of a snapshot (v0)."""
    return b"".join(
        (
            I16.pack(0),
            I32.pack(state.snapshot_epoch),
            I32.pack(state.state_epoch),
            I32.pack(state.leader_epoch),
            I64.pack(state.start_offset),
            I64.pack(state.create_ms),
            I64.pack(state.write_ms),
            _batches(state.batches),
            _tags(state.delivery_complete_count),
        )
    )


def read_snapshot(data: bytes) -> ShareState:
    """Read a snapshot.

    Raises:
        ApiError: CORRUPT_MESSAGE, also for a version of a later Kafka.
    """
    reader = CompactReader(data, SHARE_GROUP_STATE_TOPIC)
    reader.version(0)
    epochs = reader.i32(), reader.i32(), reader.i32()
    start_offset, create_ms, write_ms = reader.i64(), reader.i64(), reader.i64()
    batches = _read_batches(reader)
    return ShareState(*epochs, start_offset, _read_count(reader), create_ms, write_ms, batches)


def update_value(update: ShareUpdate) -> bytes:
    """Value bytes of an update (v0)."""
    return b"".join(
        (
            I16.pack(0),
            I32.pack(update.snapshot_epoch),
            I32.pack(update.leader_epoch),
            I64.pack(update.start_offset),
            _batches(update.batches),
            _tags(update.delivery_complete_count),
        )
    )


def read_update(data: bytes) -> ShareUpdate:
    """Read an update.

    Raises:
        ApiError: CORRUPT_MESSAGE, also for a version of a later Kafka.
    """
    reader = CompactReader(data, SHARE_GROUP_STATE_TOPIC)
    reader.version(0)
    epochs, start_offset = (reader.i32(), reader.i32()), reader.i64()
    batches = _read_batches(reader)
    return ShareUpdate(*epochs, start_offset, _read_count(reader), batches)


def _batches(batches: Iterable[StateBatch]) -> bytes:
    return compact_array(_BATCH.pack(*batch) + NO_TAGS for batch in batches)


def _read_batches(reader: CompactReader) -> tuple[StateBatch, ...]:
    def batch() -> StateBatch:
        first, last, state = reader.i64(), reader.i64(), reader.i8()
        if state not in DeliveryState.__members__.values():
            raise reader.corrupt(f"the delivery state {state} is not known")
        found = StateBatch(first, last, DeliveryState(state), reader.i16())
        reader.skip_tags()
        return found

    return tuple(reader.compact_array(batch))


def _tags(delivery_complete_count: int) -> bytes:
    if delivery_complete_count == UNKNOWN_COUNT:
        return NO_TAGS
    count = I32.pack(delivery_complete_count)
    return b"".join(map(uvarint, (1, _COUNT_TAG, len(count)))) + count


def _read_count(reader: CompactReader) -> int:
    data = reader.tags().get(_COUNT_TAG)
    return UNKNOWN_COUNT if data is None else RecordReader(data, SHARE_GROUP_STATE_TOPIC).i32()

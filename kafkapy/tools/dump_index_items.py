"""What `dump-log-segments` says line by line of files beside a `.log`, as `dump_items` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kafkapy.tools.dump_items import optional_long


@dataclass(frozen=True, slots=True)
class EmptyIndex:
    """An index without entries."""

    path: str
    kind: ClassVar[str] = "empty_index"

    def text(self) -> str:
        return f"{self.path} is empty."


@dataclass(frozen=True, slots=True)
class SaneIndex:
    """An index that --index-sanity-check finds in order."""

    path: str
    kind: ClassVar[str] = "sane_index"

    def text(self) -> str:
        return f"{self.path} passed sanity check."


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """An entry of a `.index`."""

    offset: int
    position: int
    kind: ClassVar[str] = "offset_index_entry"

    def text(self) -> str:
        return f"offset: {self.offset} position: {self.position}"


@dataclass(frozen=True, slots=True)
class TimeEntry:
    """An entry of a `.timeindex`."""

    timestamp: int
    offset: int
    kind: ClassVar[str] = "time_index_entry"

    def text(self) -> str:
        return f"timestamp: {self.timestamp} offset: {self.offset}"


@dataclass(frozen=True, slots=True)
class AbortedEntry:
    """An entry of a `.txnindex`."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    kind: ClassVar[str] = "aborted_transaction"

    def text(self) -> str:
        return (
            f"version: {self.version} producerId: {self.producer_id}"
            f" firstOffset: {self.first_offset} lastOffset: {self.last_offset}"
            f" lastStableOffset: {self.last_stable_offset}"
        )


@dataclass(frozen=True, slots=True)
class ProducerState:
    """A producer in a `.snapshot`; `last_offset` is None when its last batch is not known."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    transaction_first_offset: int | None
    last_timestamp: int
    first_sequence: int | None
    last_sequence: int | None
    last_offset: int | None
    offset_delta: int | None
    timestamp: int | None
    kind: ClassVar[str] = "producer"

    def text(self) -> str:
        line = (
            f"producerId: {self.producer_id} producerEpoch: {self.producer_epoch}"
            f" coordinatorEpoch: {self.coordinator_epoch}"
            f" currentTxnFirstOffset: {optional_long(self.transaction_first_offset)}"
            f" lastTimestamp: {self.last_timestamp} "
        )
        if self.last_offset is None:
            return line
        return (
            f"{line}firstSequence: {self.first_sequence} lastSequence: {self.last_sequence}"
            f" lastOffset: {self.last_offset} offsetDelta: {self.offset_delta}"
            f" timestamp: {self.timestamp}"
        )


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """A line of an offset checkpoint. Kafka's tool reads none of these files."""

    topic: str
    partition: int
    offset: int
    kind: ClassVar[str] = "checkpoint_entry"

    def text(self) -> str:
        return f"topic: {self.topic} partition: {self.partition} offset: {self.offset}"


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """A line of a leader-epoch-checkpoint."""

    epoch: int
    start_offset: int
    kind: ClassVar[str] = "leader_epoch"

    def text(self) -> str:
        return f"epoch: {self.epoch} startOffset: {self.start_offset}"


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """A partition.metadata."""

    topic_id: str
    kind: ClassVar[str] = "partition_metadata"

    def text(self) -> str:
        return f"topicId: {self.topic_id}"

"""Lines of `dump-log-segments` for indexes and other files; `items` has those for segments."""

from __future__ import annotations

from typing import NamedTuple

from kafkapy.tools.dump.items import optional_long


class EmptyIndex(NamedTuple):
    """An index without entries."""

    path: str

    @property
    def kind(self) -> str:
        return "empty_index"

    def text(self) -> str:
        return f"{self.path} is empty."


class SaneIndex(NamedTuple):
    """An index that passes --index-sanity-check."""

    path: str

    @property
    def kind(self) -> str:
        return "sane_index"

    def text(self) -> str:
        return f"{self.path} passed sanity check."


class OffsetEntry(NamedTuple):
    """An entry of a `.index`."""

    offset: int
    position: int

    @property
    def kind(self) -> str:
        return "offset_index_entry"

    def text(self) -> str:
        return f"offset: {self.offset} position: {self.position}"


class TimeEntry(NamedTuple):
    """An entry of a `.timeindex`."""

    timestamp: int
    offset: int

    @property
    def kind(self) -> str:
        return "time_index_entry"

    def text(self) -> str:
        return f"timestamp: {self.timestamp} offset: {self.offset}"


class AbortedEntry(NamedTuple):
    """An entry of a `.txnindex`."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    @property
    def kind(self) -> str:
        return "aborted_transaction"

    def text(self) -> str:
        return (
            f"version: {self.version} producerId: {self.producer_id}"
            f" firstOffset: {self.first_offset} lastOffset: {self.last_offset}"
            f" lastStableOffset: {self.last_stable_offset}"
        )


class ProducerState(NamedTuple):
    """A producer in a `.snapshot`. `last_offset` is None if its last batch is unknown."""

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

    @property
    def kind(self) -> str:
        return "producer"

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


class CheckpointEntry(NamedTuple):
    """A line of an offset checkpoint. Kafka's tool does not read these files."""

    topic: str
    partition: int
    offset: int

    @property
    def kind(self) -> str:
        return "checkpoint_entry"

    def text(self) -> str:
        return f"topic: {self.topic} partition: {self.partition} offset: {self.offset}"


class EpochEntry(NamedTuple):
    """A line of a leader-epoch-checkpoint."""

    epoch: int
    start_offset: int

    @property
    def kind(self) -> str:
        return "leader_epoch"

    def text(self) -> str:
        return f"epoch: {self.epoch} startOffset: {self.start_offset}"


class PartitionMetadata(NamedTuple):
    """A partition.metadata."""

    topic_id: str

    @property
    def kind(self) -> str:
        return "partition_metadata"

    def text(self) -> str:
        return f"topicId: {self.topic_id}"

"""Check that the brokers' state of producers and transactions is exactly that of the log.

The batches of each log are read again, by code other than production's: every producer's epoch,
sequence numbers and open transaction, the aborted transactions, and the last stable offset, which
no reader of committed records may pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kafkapy.record.batch_header import BatchHeader, iter_headers
from kafkapy.record.control import ControlRecordType, control_type_id
from kafkapy.record.records import batch_records
from kafkapy.replication.partition import Partition
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import TABLE, Cluster
from tests.simulation.node import Node

_READ_BYTES: Final = 1 << 20
_NONE: Final = -1
_COMPACTED: Final = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, TABLE)


@dataclass(slots=True)
class _Producer:
    epoch: int = _NONE
    last_sequence: int = _NONE
    first_offset: int = _NONE
    """The first offset of its open transaction."""


@dataclass(slots=True)
class _Replay:
    """The part of one replica's log that was read so far."""

    log: object
    truncation_count: int
    end: int
    opened_at: int
    """The log end when the log was opened or cut. Snapshots do not contain earlier markers."""
    producers: dict[int, _Producer] = field(default_factory=dict)
    batches: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """(producer id, epoch, last sequence) by the last offset."""
    ended: list[tuple[int, int]] = field(default_factory=list)
    """First offset and marker's offset of transactions."""
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """(producer id, first offset, marker's offset)."""

    def add(self, header: BatchHeader, records: bytes, position: int) -> None:
        self.end = header.next_offset
        if header.producer_id < 0:
            return
        producer = self.producers.setdefault(header.producer_id, _Producer())
        if header.producer_epoch != producer.epoch:
            producer.epoch, producer.last_sequence = header.producer_epoch, _NONE
        if not header.is_control:
            producer.last_sequence = header.last_sequence
            entry = (header.producer_id, header.producer_epoch, header.last_sequence)
            self.batches[header.last_offset] = entry
            if header.is_transactional and producer.first_offset == _NONE:
                producer.first_offset = header.base_offset
            return
        first, producer.first_offset = producer.first_offset, _NONE
        if first == _NONE:
            return
        self.ended.append((first, header.last_offset))
        [record] = batch_records(records, header, position)
        if control_type_id(record.key) == ControlRecordType.ABORT:
            self.aborted.append((header.producer_id, first, header.last_offset))

    def stable(self, high_watermark: int, committed: int) -> int:
        """The last stable offset: markers below `committed` decide transactions."""
        firsts = [p.first_offset for p in self.producers.values() if p.first_offset != _NONE]
        decided = max(committed, self.opened_at)
        firsts += [first for first, marker in self.ended if marker >= decided]
        return min([high_watermark, *firsts])


class ProducerStates(Checker):
    """Reads new batches, and all batches again after a log was opened or cut."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._replays: dict[tuple[int, PartitionKey], _Replay] = {}

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        if key.topic_partition.topic in _COMPACTED:
            return
        replay = self._read(node, key, partition)
        where = f"{key.topic_partition} on broker {node.broker_id}"
        self._compare(where, partition, replay)
        self._check_snapshots(where, partition)
        high_watermark = partition.log.high_watermark
        committed = max(high_watermark, self.cluster.committed_ends.get(key, 0))
        stable = replay.stable(high_watermark, committed)
        claimed = partition.log.last_stable_offset
        if claimed > stable:
            self.violated(
                f"{where}: the last stable offset is {claimed}, and a"
                f" transaction that began at {stable} is open"
            )

    def _read(self, node: Node, key: PartitionKey, partition: Partition) -> _Replay:
        log = partition.log
        replay = self._replays.get((node.broker_id, key))
        truncations = log.local.truncation_count
        if replay is None or replay.log is not log or replay.truncation_count != truncations:
            replay = _Replay(log, truncations, log.log_start_offset, log.log_end_offset)
            self._replays[node.broker_id, key] = replay
        while replay.end < log.log_end_offset:
            records = log.read(replay.end, _READ_BYTES, log.log_end_offset, True).records
            before = replay.end
            for position, header in iter_headers(records):
                replay.add(header, records, position)
            if replay.end == before and self.cluster.may_have_gaps:
                replay.end = log.log_end_offset
            elif replay.end == before:
                self.violated(f"{key.topic_partition} on {node.broker_id} ends before its end")
        return replay

    def _compare(self, where: str, partition: Partition, replay: _Replay) -> None:
        known, start = partition.log.producers.state.producers, partition.log.log_start_offset
        # A snapshot may contain producers whose batches were deleted, or not.
        if start == 0 and known.keys() != replay.producers.keys():
            self.violated(
                f"{where}: known are the producers {sorted(known)}, in the log are"
                f" {sorted(replay.producers)}"
            )
        for producer_id, producer in replay.producers.items():
            entry = known.get(producer_id)
            if entry is None:
                self.violated(f"{where}: producer {producer_id}, which is in the log, is not known")
            claimed = (entry.producer_epoch, entry.last_sequence, entry.transaction_first_offset)
            found = (producer.epoch, producer.last_sequence, producer.first_offset)
            if claimed != found:
                self.violated(
                    f"{where}: (epoch, last sequence, first offset of the transaction) of producer"
                    f" {producer_id} are {claimed}, in the log they are {found}"
                )
            for batch in entry.batches:
                wanted = (producer_id, entry.producer_epoch, batch.last_sequence)
                if start <= batch.first_offset and replay.batches.get(batch.last_offset) != wanted:
                    self.violated(
                        f"{where}: producer {producer_id} is said to have written sequence"
                        f" {batch.last_sequence} at offset {batch.last_offset}, where the log has"
                        f" {replay.batches.get(batch.last_offset)}"
                    )
        if replay.aborted or replay.ended:
            self._compare_aborted(where, partition, replay)

    def _check_snapshots(self, where: str, partition: Partition) -> None:
        """Check that no snapshot is past the end: it would be loaded when the log reaches it."""
        log = partition.log
        ahead = [at for at in log.producers.snapshots.offsets if at > log.log_end_offset]
        if ahead:
            self.violated(f"{where} ends at {log.log_end_offset}; there are snapshots at {ahead}")

    def _compare_aborted(self, where: str, partition: Partition, replay: _Replay) -> None:
        log = partition.log
        entries = log.aborted_transactions(log.log_start_offset, log.log_end_offset)
        claimed = sorted((e.producer_id, e.first_offset, e.last_offset) for e in entries)
        if claimed != sorted(replay.aborted):
            self.violated(
                f"{where}: the index has the aborted transactions {claimed}, the log"
                f" {sorted(replay.aborted)}"
            )

"""Check that transaction markers follow a replicated decision, and completion follows all markers.

A marker may arrive over a connection that its sender has closed, after it was sent again over
another one. It may then belong to the producer's previous transaction. Only clients of transaction
version 2 have a new epoch in each transaction (KIP-890). With older clients, the marker ends the
next transaction, in Kafka too.

A coordinator that acts on a decision that only its own log has may lose it: the next coordinator
decides again, and other partitions get different markers. A marker carries its coordinator's epoch,
by which leaders reject markers of former coordinators. That epoch is never older than the one of
the producer's first decision.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.transactions.log_records import read_transaction
from kafkapy.coordinator.transactions.state import (
    COMPLETE,
    EPOCH_BUMP_VERSION,
    PREPARED,
    TransactionState,
)
from kafkapy.record.batch_header import BatchHeader, iter_headers
from kafkapy.record.control import (
    ControlRecordType,
    EndTransactionMarker,
    read_end_transaction_marker,
)
from kafkapy.record.records import batch_records
from kafkapy.replication.partition import Partition
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node

_READ_BYTES: Final = 1 << 20
_STATE_PARTITION: Final = TopicPartition(TRANSACTION_STATE_TOPIC, 0)


@dataclass(slots=True)
class _Decision:
    """One decision of a producer id, found at `seen_us`. `epoch` is the leader epoch of the log
    with the decision; `marked` are the partitions that have its marker."""

    offset: int
    epoch: int
    commits: bool
    partitions: frozenset[TopicPartition]
    has_own_epoch: bool
    seen_us: int
    marked: set[TopicPartition] = field(default_factory=set)


class Decisions(Checker):
    """Reads appended batches: decisions in the coordinator's log, markers in other logs."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._key: PartitionKey | None = None
        self._read: dict[PartitionKey, tuple[int, int]] = {}
        """The leader epoch, and the position up to which that leader's log was read."""
        self._leaders: dict[PartitionKey, int] = {}
        """The broker whose log was read last."""
        self._decisions: defaultdict[int, list[_Decision]] = defaultdict(list)
        """The decisions of each producer id, by offset: the last one counts."""
        self._first_epochs: dict[int, int] = {}
        """The coordinator's epoch at the first decision of a producer id."""
        self._known: set[tuple[PartitionKey, int, int]] = set()
        """Offsets and CRCs of markers. A new leader's log is read again from the committed end."""
        self._markers: list[tuple[str, TopicPartition, int, EndTransactionMarker]] = []
        self._completed: list[int] = []
        """Completed transactions of this step, which may have moved the high watermark first."""

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        if partition.is_leader and self.cluster.plan.transactional_ids:
            self._read_log(node, key, partition)

    def on_stopped_serving(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        """Read the last appends of a leader. A coordinator may get its response, or may be the
        broker itself, which has lost only this log directory."""
        epoch, _ = self._read.get(key, (-1, 0))
        led = self._leaders.get(key) == node.broker_id and epoch == partition.leader_epoch
        if led:
            self._read_log(node, key, partition)
        else:
            self.on_partition(node, key, partition)

    def _read_log(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        epoch, position = self._read.get(key, (-1, 0))
        if partition.leader_epoch < epoch:
            return
        self._leaders[key] = node.broker_id
        log = partition.log
        if partition.leader_epoch > epoch:
            # Above the committed end, this leader's log may differ.
            position = min(position, self.cluster.committed_ends.get(key, 0))
            if key.topic_partition == _STATE_PARTITION:
                self._drop_decisions(position)
        position = max(min(position, log.log_end_offset), log.log_start_offset)
        while position < log.log_end_offset:
            before = position
            records = log.read(position, _READ_BYTES, log.log_end_offset, True).records
            for at, header in iter_headers(records):
                if key.topic_partition == _STATE_PARTITION:
                    self._key = key
                    self._read_decisions(header, records, at, epoch=partition.leader_epoch)
                elif header.is_control and (key, header.base_offset, header.crc) not in self._known:
                    self._known.add((key, header.base_offset, header.crc))
                    [record] = batch_records(records, header, at)
                    marker = read_end_transaction_marker(record.key, record.value)
                    assert marker is not None
                    found = node.host, key.topic_partition, header.producer_id, marker
                    self._markers.append(found)
                position = header.next_offset
            if position == before:
                break
        self._read[key] = partition.leader_epoch, position

    def _drop_decisions(self, offset: int) -> None:
        """Drop the decisions from `offset` on, which a new leader may lack; it obeys the others."""
        for decisions in self._decisions.values():
            while decisions and decisions[-1].offset >= offset:
                decisions.pop()

    def _last(self, producer_id: int) -> _Decision | None:
        decisions = self._decisions[producer_id]
        return decisions[-1] if decisions else None

    def _read_decisions(
        self, header: BatchHeader, records: bytes, position: int, epoch: int
    ) -> None:
        """Read a batch of the coordinator's log."""
        for record in batch_records(records, header, position):
            if record.value is None:
                continue
            found = read_transaction("", record.value)
            if found.state in PREPARED:
                self._first_epochs.setdefault(found.producer_id, header.partition_leader_epoch)
                commits = found.state is TransactionState.PREPARE_COMMIT
                decision = _Decision(
                    record.offset,
                    epoch,
                    commits,
                    frozenset(found.partitions),
                    has_own_epoch=found.client_version >= EPOCH_BUMP_VERSION,
                    seen_us=self.world.events.now_us,
                )
                self._decisions[found.producer_id].append(decision)
            elif found.state in COMPLETE:
                self._completed.append(found.producer_id)

    def on_step(self, node: Node) -> None:
        for marker in self._markers:
            self._check_marker(*marker)
        for producer_id in self._completed:
            self._check_complete(producer_id)
        self._markers.clear()
        self._completed.clear()

    def _check_complete(self, producer_id: int) -> None:
        decision = self._last(producer_id)
        if decision is None:
            return
        losses = self.cluster.history.losses
        missing = decision.partitions - decision.marked - losses.keys()
        if missing and _STATE_PARTITION not in losses:
            self.violated(
                f"the transaction of producer {producer_id} is complete, and has no marker in"
                f" {sorted(missing)}"
            )

    def _check_marker(
        self, host: str, at: TopicPartition, producer_id: int, marker: EndTransactionMarker
    ) -> None:
        first = self._first_epochs.get(producer_id, 0)
        if marker.coordinator_epoch < first:
            self.violated(
                f"{at} has a marker of producer {producer_id} by a coordinator of epoch"
                f" {marker.coordinator_epoch}; the first decision was of epoch {first}"
            )
        commits = marker.control_type is ControlRecordType.COMMIT
        decision = self._last(producer_id)
        if decision is None or decision.commits != commits or self._key is None:
            return
        if marker.coordinator_epoch < decision.epoch:
            # The former leader found the decision in all in-sync logs; the present one's has it.
            decision.marked.add(at)
            return
        committed = max(
            self.cluster.committed_ends.get(self._key, 0),
            self.cluster.required_ends.get(self._key, 0),
        )
        if decision.offset >= committed and _STATE_PARTITION not in self.cluster.history.losses:
            late_data_us = self.world.network.late_data_us.get(host, -1)
            if late_data_us >= decision.seen_us and not decision.has_own_epoch:
                return
            self.violated(
                f"{at} has a marker of producer {producer_id}, whose decision is at offset"
                f" {decision.offset}: committed is what is below {committed}"
            )
        decision.marked.add(at)

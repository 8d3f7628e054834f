"""Check that consumers read only below the high watermark, from followers too (KIP-392)."""

from __future__ import annotations

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.partition import Partition
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node


class CommittedReads(Checker):
    """Compares each poll with the highest high watermark of any replica until then. A replaced
    leader that has not learned of its successor may commit records that the successor has."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._highest: dict[TopicPartition, int] = {}
        self._problem = ""
        cluster.history.on_polled = self._polled

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        self._note(partition)

    def on_stopped_serving(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        """Note the high watermark of the last step, whose responses may arrive."""
        self._note(partition)

    def _note(self, partition: Partition) -> None:
        at = partition.topic_partition
        self._highest[at] = max(self._highest.get(at, 0), partition.log.high_watermark)

    def _polled(self, at: TopicPartition, last: int) -> None:
        """Check a poll. After a loss, old responses may still arrive."""
        end = self._highest.get(at, 0)
        if last >= end and at not in self.cluster.history.losses and not self._problem:
            self._problem = f"offset {last} of {at} was read: no high watermark is beyond {end}"

    def on_step(self, node: Node) -> None:
        if self._problem:
            self.violated(self._problem)

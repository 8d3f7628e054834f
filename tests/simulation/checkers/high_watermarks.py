"""Check that the high watermark never goes back on a leader in one leader epoch.

If a leader restarts and no controller notices (the controller died too), it goes on to lead in its
epoch, from the high watermark of its checkpoint. The checker treats that as another run, as Kafka
does.
"""

from __future__ import annotations

from kafkapy.replication.partition import Partition
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node


class HighWatermarks(Checker):
    """Records the highest high watermark of each leader epoch."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._highest: dict[tuple[PartitionKey, int, int], int] = {}

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        if not partition.is_leader:
            return
        epoch, now = partition.leader_epoch, partition.log.high_watermark
        before = self._highest.get((key, epoch, node.run_number), 0)
        if now < before:
            self.violated(
                f"{key.topic_partition}: on leader {node.broker_id} in epoch {epoch} it went from"
                f" {before} to {now}"
            )
        if now > partition.log.log_end_offset:
            self.violated(f"{key.topic_partition}: {now} is past the log end of {node.broker_id}")
        self._highest[key, epoch, node.run_number] = now

"""One leader per leader epoch: no two brokers ever act as leader of a partition in one epoch."""

from __future__ import annotations

from kafkapy.replication.partition import Partition
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node


class LeaderEpochs(Checker):
    """Remembers who led in each epoch."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._leaders: dict[tuple[PartitionKey, int], int] = {}

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        if not partition.is_leader:
            return
        epoch = partition.leader_epoch
        leader = self._leaders.setdefault((key, epoch), node.broker_id)
        if leader != node.broker_id:
            self.violated(
                f"{key.topic_partition} is led by {node.broker_id} in leader epoch {epoch}, in"
                f" which {leader} led"
            )

"""Check that fetches with a leader epoch are answered in that epoch, or refused (KIP-320)."""

from __future__ import annotations

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.partition import Partition
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node

_Tenure = tuple[int, TopicPartition, int]


class Fencing(Checker):
    """Records the period in which each broker was in each leader epoch."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._current: dict[tuple[int, TopicPartition], int] = {}
        self._entered_us: dict[_Tenure, int] = {}
        self._left_us: dict[_Tenure, int] = {}

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        where, epoch = (node.broker_id, key.topic_partition), partition.leader_epoch
        before = self._current.get(where)
        if before == epoch:
            return
        now_us = self.world.events.now_us
        if before is not None:
            self._left_us[*where, before] = now_us
        self._current[where] = epoch
        self._entered_us.setdefault((*where, epoch), now_us)

    def on_end(self) -> None:
        for tenure, (answered_us, requested_us) in self.cluster.history.fenced_fetches.items():
            broker_id, at, epoch = tenure
            entered_us, left_us = self._entered_us.get(tenure), self._left_us.get(tenure)
            message = f"broker {broker_id} answered a fetch of {at} that named leader epoch {epoch}"
            if entered_us is None or answered_us < entered_us:
                self.violated(f"{message}, of which it did not know yet")
            if left_us is not None and requested_us > left_us:
                self.violated(f"{message}, which was over there")

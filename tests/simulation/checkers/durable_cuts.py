"""Check that truncations are on the disk before the broker continues: cut records stay gone."""

from __future__ import annotations

from kafkapy.replication.partition import Partition
from kafkapy.storage.unified_log import UnifiedLog
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node


class DurableCuts(Checker):
    """Inspects the disk after each truncation."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._known: dict[tuple[int, PartitionKey], tuple[UnifiedLog, int]] = {}

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        log, where = partition.log, (node.broker_id, key)
        known, truncations = self._known.get(where, (log, 0))
        self._known[where] = log, log.local.truncation_count
        if known is log and truncations < log.local.truncation_count:
            undone = node.disk.unsynced_cuts(log.directory)
            if undone:
                self.violated(
                    f"a power cut of broker {node.broker_id} brings back what was cut from {undone}"
                )

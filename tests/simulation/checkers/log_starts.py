"""Check that only committed records are deleted: on request, or by retention."""

from __future__ import annotations

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.partition import Partition
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import RETAINED, RETENTION_BYTES
from tests.simulation.node import Node


class LogStarts(Checker):
    """Compares log start offsets with the requests, and with the committed records.
    `Cluster.unsettled` waits until followers begin no earlier than their leader."""

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        log, at = partition.log, key.topic_partition
        if at.topic == RETAINED:
            self._check_retention(node, at, partition)
        asked = self.cluster.history.trimmed_to.get(at, 0)
        if log.log_start_offset > asked:
            self.violated(
                f"{at} begins at {log.log_start_offset} on broker {node.broker_id}; deletion was"
                f" asked for up to {asked}"
            )
        if log.log_start_offset > log.high_watermark:
            self.violated(
                f"{at} begins at {log.log_start_offset} on broker {node.broker_id}, past its high"
                f" watermark {log.high_watermark}"
            )

    def _check_retention(self, node: Node, at: TopicPartition, partition: Partition) -> None:
        """Check that retention leaves `RETENTION_BYTES`. Followers delete as their leader did."""
        log, history = partition.log, self.cluster.history
        if log.log_start_offset > history.trimmed_to.get(at, 0):
            if log.size_bytes < RETENTION_BYTES:
                self.violated(
                    f"retention left {log.size_bytes} bytes of {at} on broker {node.broker_id}"
                )
            self.world.counts["segments deleted by retention"] += 1
            history.trim(at, log.log_start_offset)

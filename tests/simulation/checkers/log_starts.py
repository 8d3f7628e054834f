"""Records are only deleted that somebody asked to have deleted, and only committed ones; followers
delete what their leader has deleted."""

from __future__ import annotations

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.partition import Partition
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.node import Node


class LogStarts(Checker):
    """Holds log start offsets against the requests, against what is committed, and at the end
    against the leader's. (A leader that was killed may have gone back to its checkpoint.)"""

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        log, at = partition.log, key.topic_partition
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

    def on_end(self) -> None:
        starts: dict[TopicPartition, dict[int, int]] = {}
        leaders: dict[TopicPartition, int] = {}
        for node in self.world.nodes.values():
            for partition in node.partitions():
                at = partition.topic_partition
                starts.setdefault(at, {})[node.broker_id] = partition.log.log_start_offset
                if partition.is_leader:
                    leaders[at] = node.broker_id
        for at in self.cluster.history.trimmed_to:
            assigned = self.cluster.assignment(at) or ()
            found = {b: start for b, start in starts.get(at, {}).items() if b in assigned}
            leader = leaders.get(at)
            if leader in found and min(found.values()) < found[leader]:
                self.violated(f"{at} begins at {found}; {leader} leads")

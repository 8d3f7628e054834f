"""Check that each leader epoch has one leader, in one run of its broker.

No two brokers ever act as leader of a partition in one epoch, and a restarted broker leads in a
later one. No replica goes back to an older epoch.

A leader that restarts may have lost the end of its log. If it went on to lead in its epoch, other
records would have the same offsets and epoch. Excluded are topics that are being deleted, which no
longer get a leader, and partitions with one replica.
"""

from __future__ import annotations

from kafkapy.replication.partition import Partition
from kafkapy.zk.stores import paths
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node


class LeaderEpochs(Checker):
    """Records the leader of each epoch, and the latest epoch of each replica in each run."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._leaders: dict[tuple[PartitionKey, int], tuple[int, int]] = {}
        self._latest: dict[tuple[PartitionKey, int, int], int] = {}

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        at, epoch, mine = (
            key.topic_partition,
            partition.leader_epoch,
            (node.broker_id, node.run_number),
        )
        latest = self._latest.get((key, *mine), epoch)
        if epoch < latest:
            self.violated(
                f"{at} on broker {node.broker_id} went from leader epoch {latest} to {epoch}"
            )
        self._latest[key, *mine] = epoch
        if not partition.is_leader:
            return
        leader, run_number = self._leaders.setdefault((key, epoch), mine)
        if leader != node.broker_id:
            self.violated(
                f"{at} is led by {node.broker_id} in leader epoch {epoch}, in which {leader} led"
            )
        if (
            run_number != node.run_number
            and len(partition.assigned_replicas) > 1
            and not self._is_being_deleted(at.topic)
        ):
            self.violated(f"{at}: {leader} restarted, and leads on in leader epoch {epoch}")

    def _is_being_deleted(self, topic: str) -> bool:
        """Whether the topic is marked for deletion."""
        return f"{paths.DELETE_TOPICS}/{topic}" in self.world.ensemble.tree.nodes

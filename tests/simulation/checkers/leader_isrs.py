"""Check that the leader of an epoch holds or has proposed each ISR in ZooKeeper of that epoch.

The leader waits for the members of both (KIP-497). It never receives an ISR that it did not
propose. It would count records as replicated that a member lacks, and that member may be elected.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.partition import Partition
from kafkapy.zk.stores import paths
from kafkapy.zk.zookeeper import Op, SetData
from tests.simulation.checkers.base import Checker


class LeaderIsrs(Checker):
    """Compares each written ISR with the state of its leader at that moment."""

    def on_change(self, ops: Sequence[Op]) -> None:
        for op in ops:
            parts = op.path.split("/")
            is_state = op.path.startswith(f"{paths.TOPICS}/") and parts[-1] == "state"
            if isinstance(op, SetData) and is_state:
                self._check_state(TopicPartition(parts[3], int(parts[5])), orjson.loads(op.data))

    def _check_state(self, at: TopicPartition, state: dict[str, object]) -> None:
        leader, isr = state["leader"], state["isr"]
        assert isinstance(isr, list)
        node = self.world.nodes.get(int(str(leader)))
        for partition in [] if node is None else node.partitions():
            is_it = partition.topic_partition == at and partition.is_leader
            if is_it and partition.leader_epoch == state["leader_epoch"]:
                self._compare(at, partition, isr)

    def _compare(self, at: TopicPartition, partition: Partition, isr: list[int]) -> None:
        known = [partition.isr]
        if partition.in_sync.pending is not None:
            known.append(frozenset(partition.in_sync.pending.isr))
        if frozenset(isr) not in known:
            self.violated(
                f"{at}: ISR {isr} is written in leader epoch {partition.leader_epoch}, whose leader"
                f" {partition.local_id} knows {[sorted(each) for each in known]}"
            )

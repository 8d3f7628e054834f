"""Check that a topic's znode is deleted only after its last replica."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.zk.stores import paths
from kafkapy.zk.zookeeper import Create, Delete, Op, SetData
from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import Cluster


class DeletedTopics(Checker):
    """Searches for the logs of a topic when its znode is deleted."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._replicas: dict[str, dict[str, list[int]]] = {}

    def on_change(self, ops: Sequence[Op]) -> None:
        for op in ops:
            parent, _, topic = op.path.rpartition("/")
            if parent != paths.TOPICS:
                continue
            if isinstance(op, Create | SetData):
                self._replicas[topic] = orjson.loads(op.data)["partitions"]
            elif isinstance(op, Delete):
                self._check_deleted(topic)

    def _check_deleted(self, topic: str) -> None:
        self.world.counts["topics deleted"] += 1
        for index, replicas in self._replicas.pop(topic).items():
            left = [b for b in replicas if self._has(b, TopicPartition(topic, int(index)))]
            if left:
                self.violated(f"{topic} is deleted; brokers {left} have a log of {topic}-{index}")

    def _has(self, broker_id: int, at: TopicPartition) -> bool:
        """Whether a broker serves a replica, or has it on its disk while it is down."""
        node = self.world.nodes[broker_id]
        if node.built_broker is not None:
            return at in node.built_broker.replicas.log_manager.logs
        return any(node.disk.stat(f"{path}/{at}") is not None for path in node.log_dirs)

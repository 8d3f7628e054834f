"""Base class of checkers: the events that it receives, and the violation that it raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from kafkapy.common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafkapy.replication.partition import Partition
    from kafkapy.zk.zookeeper import Op
    from tests.simulation.cluster import Cluster
    from tests.simulation.node import Node


class Violation(AssertionError):
    """A broken guarantee: the checker's name and its observation."""

    def __init__(self, checker: str, message: str) -> None:
        super().__init__(f"{checker}: {message}")
        self.checker = checker


class PartitionKey(NamedTuple):
    """A partition's permanent identity: a later topic of the same name has other keys."""

    topic_id: str
    topic_partition: TopicPartition


class Checker:
    """Checks one guarantee. By default, each event is ignored."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.world = cluster.world

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        """Called when a hosted partition changed: leadership, epoch, ISR, high watermark or end."""

    def on_step(self, node: Node) -> None:
        """Called after a step of a broker."""

    def on_stopped_serving(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        """Called when a broker no longer serves a partition: its process is about to end, perhaps
        in the middle of a step, the log is about to be deleted, or its directory failed in this
        step. The broker's earlier actions in that step count, its responses included."""

    def on_change(self, ops: Sequence[Op]) -> None:
        """Called after a transaction changed the znodes."""

    def on_end(self) -> None:
        """Called at the end: no link is cut, all brokers run, the cluster settled or timed out."""

    def violated(self, message: str) -> NoReturn:
        raise Violation(type(self).__name__, message)

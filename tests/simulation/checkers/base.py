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
    """A promise that was not kept: the checker's name and what it saw."""

    def __init__(self, checker: str, what: str) -> None:
        super().__init__(f"{checker}: {what}")
        self.checker = checker


class PartitionKey(NamedTuple):
    """A partition for good: a topic of the same name made later is another one."""

    topic_id: str
    topic_partition: TopicPartition


class Checker:
    """One promise. What a subclass does not care for does nothing."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.world = cluster.world

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        """Something of a hosted partition changed: leadership, epoch, ISR, high watermark, end."""

    def on_step(self, node: Node) -> None:
        """A broker did something."""

    def on_leaving(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        """A broker serves a partition no more: its process is about to end, perhaps in the middle
        of a step, or the log directory failed in this step. What it did in that step before, its
        answers among it, counts."""

    def on_change(self, ops: Sequence[Op]) -> None:
        """A transaction changed the znodes."""

    def on_end(self) -> None:
        """The network is whole, all brokers run, everything has settled or never will."""

    def violated(self, what: str) -> NoReturn:
        raise Violation(type(self).__name__, what)

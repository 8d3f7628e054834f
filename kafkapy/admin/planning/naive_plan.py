"""The plan of Kafka's `--generate`: a new placement of every topic, regardless of moves.

`ReassignPartitionsCommand.calculateAssignment`: each topic is assigned like a new topic, with the
replication factor of its first partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkapy.admin.cluster_replicas import Assignment
from kafkapy.common.placement import BrokerPlace, assign_replicas
from kafkapy.common.topic_partition import TopicPartition


def naive_plan(
    current: Assignment, brokers: Sequence[BrokerPlace], draw: Callable[[int], int]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Place the partitions of `current` on `brokers`. `draw(n)` returns a number below n.

    Raises:
        ApiError: too few brokers, or only some of them have a rack.
    """
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(current):
        topics.setdefault(topic, []).append(index)
    plan: dict[TopicPartition, tuple[int, ...]] = {}
    places = max(1, len(brokers))
    for topic, indexes in topics.items():
        replication_factor = len(current[TopicPartition(topic, indexes[0])])
        placed = assign_replicas(
            brokers,
            len(indexes),
            replication_factor,
            start_index=draw(places),
            shift=draw(places),
        )
        plan |= {TopicPartition(topic, index): replicas for index, replicas in placed.items()}
    return plan

"""Input of reassignment planners: brokers, racks and replicas; and the summary of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkapy.common.placement import BrokerPlace
from kafkapy.common.topic_partition import TopicPartition

Assignment = Mapping[TopicPartition, tuple[int, ...]]
"""The replicas of partitions; the first of each is the preferred leader."""


class PlanSummary(NamedTuple):
    """The effects of a plan. Bytes are None if no size is known."""

    partitions_changed: int
    replicas_to_copy: int
    bytes_to_copy: int | None
    leaders_changed: int
    replicas: dict[int, int]
    """The number of replicas on each broker after the plan."""
    leaders: dict[int, int]


def summarise(
    before: Assignment,
    after: Assignment,
    brokers: Iterable[BrokerPlace],
    sizes_bytes: Mapping[TopicPartition, int] | None = None,
) -> PlanSummary:
    """Compare two assignments of the same partitions."""
    replicas = {broker.broker_id: 0 for broker in brokers}
    leaders = dict(replicas)
    copies = 0
    size = None if sizes_bytes is None else 0
    for tp, target in after.items():
        new = len(set(target) - set(before[tp]))
        copies += new
        if sizes_bytes is not None and size is not None:
            size += new * sizes_bytes.get(tp, 0)
        for broker_id in target:
            replicas[broker_id] = replicas.get(broker_id, 0) + 1
        leaders[target[0]] = leaders.get(target[0], 0) + 1
    return PlanSummary(
        sum(before[tp] != target for tp, target in after.items()),
        copies,
        size,
        sum(before[tp][0] != target[0] for tp, target in after.items()),
        replicas,
        leaders,
    )

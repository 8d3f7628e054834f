"""Summary of a reassignment plan: replicas and bytes to copy, leaders that change."""

from __future__ import annotations

from kafkapy.admin.cluster_replicas import PlanSummary, summarise
from kafkapy.common.topic_partition import TopicPartition
from tests.harness.cores.assignments import assignment, brokers


def test_copies_bytes_and_leaders_are_counted() -> None:
    before, after = assignment((1, 2), (2, 3), (3, 1)), assignment((2, 4), (2, 3), (1, 3))
    sizes = {TopicPartition("t", 0): 100, TopicPartition("t", 1): 7}
    assert summarise(before, after, brokers(1, 2, 3, 4), sizes) == PlanSummary(
        partitions_changed=2,
        replicas_to_copy=1,
        bytes_to_copy=100,
        leaders_changed=2,
        replicas={1: 1, 2: 2, 3: 2, 4: 1},
        leaders={1: 1, 2: 2, 3: 0, 4: 0},
    )
    assert summarise(before, after, brokers(1)).bytes_to_copy is None

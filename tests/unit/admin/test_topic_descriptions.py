"""Topic descriptions: the data that they join, and the partitions that reports select."""

from __future__ import annotations

import pytest

from kafkapy.admin.reassignments import Reassignment
from kafkapy.admin.topic_descriptions import PartitionDescription, describe_topics
from kafkapy.client.cluster import Cluster
from kafkapy.client.metadata import PartitionMetadata
from kafkapy.protocol.api_keys import ApiKey
from tests.harness.scripted.scripted_topics import describing_cluster


def partition(
    leader: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    moving: Reassignment = Reassignment((), ()),  # noqa: B008 (a constant)
    live: bool = True,
    minimum: int = 2,
) -> PartitionDescription:
    return PartitionDescription(
        "t", PartitionMetadata(0, leader, 0, replicas, isr), moving, live, minimum
    )


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        # under-replicated, unavailable, under min ISR, at min ISR
        (partition(1, (1, 2, 3), (1, 2, 3)), (False, False, False, False)),
        (partition(1, (1, 2, 3), (1, 2)), (True, False, False, True)),
        (partition(1, (1, 2, 3), (1,)), (True, False, True, False)),
        (partition(-1, (1, 2), (1, 2)), (False, True, True, True)),
        (partition(1, (1, 2), (1, 2), live=False), (False, True, False, True)),
        (
            partition(1, (3, 4, 1, 2), (1, 2), Reassignment((3, 4), (1, 2), (3, 4, 1, 2))),
            (False,) * 3 + (True,),
        ),
        (partition(1, (1, 2), (1,), Reassignment((9,), (), (1, 2, 9))), (True, False, True, False)),
        # The move began after the metadata was read: a replica that is not in sync is reported.
        (
            partition(1, (1, 2, 3), (1, 2), Reassignment((4,), (3,), (4, 1, 2, 3))),
            (True, False, False, True),
        ),
    ],
)
def test_reports(described: PartitionDescription, expected: tuple[bool, ...]) -> None:
    assert (
        described.under_replicated,
        described.unavailable,
        described.under_min_isr,
        described.at_min_isr,
    ) == expected


def test_a_description_joins_all_its_sources() -> None:
    cluster = Cluster("b:1", connector=describing_cluster().connect)
    topics = cluster.metadata(None).topics
    (t, plain), refusal = describe_topics(cluster, [topics["t"], topics["plain"]])
    assert refusal is None
    assert t.overrides == {"min.insync.replicas": "2", "retention.ms": "5"}
    assert [p.min_insync_replicas for p in t.partitions] == [2] * 5
    assert [p.leader_is_live for p in t.partitions] == [True, True, False, False, True]
    assert t.partitions[4].replication_factor == 2
    assert (plain.overrides, plain.partitions[0].min_insync_replicas) == ({}, 1)


def test_no_topics_ask_nothing() -> None:
    scripted = describing_cluster()
    assert describe_topics(Cluster("b:1", connector=scripted.connect), []) == ([], None)
    assert scripted.requests_of(ApiKey.DESCRIBE_CONFIGS) == []

"""`topics --describe`, to the letter."""

from typing import Any

import pytest

from kafkapy.admin.reassignments import Reassignment
from kafkapy.admin.topic_descriptions import describe_topics
from kafkapy.cli.views.topics import describe_report, header_line, partition_line
from kafkapy.client.cluster import Cluster
from kafkapy.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from tests.harness.scripted.scripted_topics import TOPIC_ID, describing_cluster


def described(*names: str, **script: Any) -> list:  # type: ignore[type-arg]
    cluster = Cluster("b:1", connector=describing_cluster(**script).connect)
    found = cluster.metadata(None).topics
    return describe_topics(cluster, [found[name] for name in names])[0]


def test_the_text_is_kafkas() -> None:
    report = describe_report(described("t"), [], overrides_only=False)
    assert list(report.text) == [
        f"Topic: t\tTopicId: {TOPIC_ID}\tPartitionCount: 5\tReplicationFactor: 2"
        "\tConfigs: min.insync.replicas=2,retention.ms=5",
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: N/A\tLastKnownElr: N/A",
        "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 2,1\tIsr: 2\tElr: N/A\tLastKnownElr: N/A",
        "\tTopic: t\tPartition: 2\tLeader: none\tReplicas: 1\tIsr: \tElr: N/A\tLastKnownElr: N/A",
        "\tTopic: t\tPartition: 3\tLeader: 3\tReplicas: 3,1\tIsr: 1,3\tElr: N/A\tLastKnownElr: N/A",
        "\tTopic: t\tPartition: 4\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2"
        "\tAdding Replicas: 3\tRemoving Replicas: 2\tElr: N/A\tLastKnownElr: N/A",
    ]


@pytest.mark.parametrize(
    ("moving", "shown"),
    [
        (Reassignment((3,), (), (1, 2, 3)), "Adding Replicas: 3\tRemoving Replicas: \t"),
        (Reassignment((), (2,), (1, 2)), "Adding Replicas: \tRemoving Replicas: 2\t"),
    ],
)
def test_a_move_shows_both_sides_also_an_empty_one(moving: Reassignment, shown: str) -> None:
    partition = described("t")[0].partitions[0]._replace(reassignment=moving)
    assert f"\tIsr: 1,2\t{shown}Elr: N/A" in partition_line(partition)


def test_a_topic_without_an_id_does_not_show_one() -> None:
    (plain,) = described("plain")
    expected = "Topic: plain\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: "
    assert header_line(plain) == expected


def test_json_has_everything() -> None:
    (topic,) = describe_report(described("t"), [], overrides_only=False).data
    assert topic["configs"] == {"min.insync.replicas": "2", "retention.ms": "5"}
    assert topic["partitions"][2] == {
        "partition": 2,
        "leader": None,
        "leader_epoch": 0,
        "replicas": [1],
        "isr": [],
        "offline_replicas": [],
        "adding_replicas": [],
        "removing_replicas": [],
        "eligible_leader_replicas": None,
        "last_known_eligible_leader_replicas": None,
    }
    assert topic["partitions"][4]["adding_replicas"] == [3]


def test_eligible_leaders_are_shown_where_they_are_known() -> None:
    partition = DescribeTopicPartitionsResponsePartition(
        partition_index=0, eligible_leader_replicas=[2, 3], last_known_elr=[]
    )
    topic = DescribeTopicPartitionsResponseTopic(name="plain", partitions=[partition])
    answer = DescribeTopicPartitionsResponse(topics=[topic])
    (plain,) = described("plain", DESCRIBE_TOPIC_PARTITIONS=answer)
    report = describe_report([plain], [], overrides_only=False)
    assert list(report.text)[1].endswith("\tElr: 2,3\tLastKnownElr: ")
    (shown,) = report.data[0]["partitions"]
    assert shown["eligible_leader_replicas"] == [2, 3]
    assert shown["last_known_eligible_leader_replicas"] == []


def test_the_table_says_what_to_look_at() -> None:
    (table,) = describe_report(described("t"), [], overrides_only=False).tables
    health = [row[-1] for row in table.rows]
    assert health == ["", "under-replicated", "offline", "offline", "moving"]
    assert table.title is not None
    assert table.title.startswith("t  5 partitions")


def test_a_report_drops_topics_without_matches() -> None:
    found = describe_report(
        described("t", "plain"), ["under_replicated_partitions"], overrides_only=False
    )
    assert [topic["topic"] for topic in found.data] == ["t"]
    nothing = describe_report(described("plain"), ["unavailable_partitions"], overrides_only=False)
    assert (list(nothing.text), nothing.data) == ([], [])

"""Eligible leader replicas: asked page by page, where a broker knows them."""

import pytest

from kafkapy.admin.planning.eligible_leaders import EligibleLeaders, eligible_leaders
from kafkapy.client.cluster import Cluster
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import describe_topic_partitions as described
from tests.harness.scripted.scripted_broker import ScriptedCluster


def topic(index: int, elr: list[int] | None) -> described.DescribeTopicPartitionsResponseTopic:
    partition = described.DescribeTopicPartitionsResponsePartition(
        partition_index=index, eligible_leader_replicas=elr, last_known_elr=[3] if elr else elr
    )
    return described.DescribeTopicPartitionsResponseTopic(name="t", partitions=[partition])


def test_the_next_page_is_asked_for_until_there_is_none() -> None:
    cursor = described.CursorResponse(topic_name="t", partition_index=1)
    pages = [
        described.DescribeTopicPartitionsResponse(topics=[topic(0, [1, 2])], next_cursor=cursor),
        described.DescribeTopicPartitionsResponse(topics=[topic(1, []), topic(2, None)]),
    ]
    versions = {ApiKey.API_VERSIONS: (0, 3), ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0)}
    scripted = ScriptedCluster({ApiKey.DESCRIBE_TOPIC_PARTITIONS: pages}, versions)
    found = eligible_leaders(Cluster("b:1", connector=scripted.connect), ["t"], page_size=1)
    assert found == {
        TopicPartition("t", 0): EligibleLeaders((1, 2), (3,)),
        TopicPartition("t", 1): EligibleLeaders((), ()),
    }
    first, second = scripted.requests_of(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
    assert ([t.name for t in first.topics], first.response_partition_limit) == (["t"], 1)
    assert first.cursor is None
    assert (second.cursor.topic_name, second.cursor.partition_index) == ("t", 1)


@pytest.mark.parametrize(
    "served",
    [(), (ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.LEADER_AND_ISR)],
    ids=["without the request", "of ZooKeeper mode"],
)
def test_a_broker_without_eligible_leaders_is_not_asked(served: tuple[ApiKey, ...]) -> None:
    versions = {ApiKey.API_VERSIONS: (0, 3), **dict.fromkeys(served, (0, 0))}
    scripted = ScriptedCluster({}, versions)
    assert eligible_leaders(Cluster("b:1", connector=scripted.connect), ["t"]) == {}

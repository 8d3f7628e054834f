"""ListOffsets by leader: versions, leaders that move, errors by partition."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.client.offsets import LATEST_TIMESTAMP, MAX_TIMESTAMP, OffsetResult
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

TOPICS = {"t": {0: (1, [1], [1]), 1: (2, [2], [2]), 2: (-1, [3], [])}}
BROKERS = {1: 9001, 2: 9002}


def offsets(request: Any, port: int, code: int = 0) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=p.partition_index,
                        offset=port + p.partition_index,
                        timestamp=p.timestamp,
                        leader_epoch=7,
                        error_code=code,
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def cluster_on(script: Any, versions: Any = None) -> tuple[Cluster, ScriptedCluster]:
    scripted = ScriptedCluster(
        {ApiKey.METADATA: metadata(TOPICS, brokers=BROKERS), **script}, versions
    )
    return Cluster("b:1", connector=scripted.connect), scripted


def test_each_leader_is_asked_for_its_own() -> None:
    cluster, scripted = cluster_on({ApiKey.LIST_OFFSETS: offsets})
    wanted = {TopicPartition("t", 0): LATEST_TIMESTAMP, TopicPartition("t", 1): 123}
    assert cluster.list_offsets(wanted, isolation_level=1) == {
        TopicPartition("t", 0): OffsetResult(9001, -1, 7),
        TopicPartition("t", 1): OffsetResult(9003, 123, 7),
    }
    assert {r.isolation_level for r in scripted.requests_of(ApiKey.LIST_OFFSETS)} == {1}


def test_a_leader_that_moved_is_asked_again() -> None:
    answers = [lambda r, p: offsets(r, p, ErrorCode.NOT_LEADER_OR_FOLLOWER), offsets]
    cluster, scripted = cluster_on({ApiKey.LIST_OFFSETS: answers})
    found = cluster.list_offsets({TopicPartition("t", 0): LATEST_TIMESTAMP})
    assert found[TopicPartition("t", 0)].offset == 9001
    assert len(scripted.requests_of(ApiKey.METADATA)) == 2


def test_a_leader_that_does_not_have_a_new_partition_yet_ends_no_query() -> None:
    """The metadata came from a broker that knew the partition earlier than its leader."""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answers = [lambda r, p: offsets(r, p, unknown), offsets]
    cluster, scripted = cluster_on({ApiKey.LIST_OFFSETS: answers})
    found = cluster.list_offsets({TopicPartition("t", 0): LATEST_TIMESTAMP})
    assert found[TopicPartition("t", 0)].offset == 9001
    assert len(scripted.requests_of(ApiKey.METADATA)) == 2


def test_a_partition_that_is_deleted_while_it_is_asked_for_is_not_waited_for() -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answers = {
        ApiKey.LIST_OFFSETS: lambda r, p: offsets(r, p, unknown),
        ApiKey.METADATA: [metadata(TOPICS, brokers=BROKERS), metadata({}, brokers=BROKERS)],
    }
    cluster, scripted = cluster_on(answers)
    tp = TopicPartition("t", 0)
    assert cluster.list_offsets({tp: LATEST_TIMESTAMP})[tp].error is unknown
    assert len(scripted.requests_of(ApiKey.LIST_OFFSETS)) == 1


def test_the_next_leader_is_asked_when_one_hangs() -> None:
    """The other broker has the new leader. The one that hangs is not asked for it."""
    moved = {"t": {0: (2, [1, 2], [2])}}

    def leaders(request: Any, port: int) -> Any:
        return metadata(TOPICS if port == 9001 else moved, brokers=BROKERS)(request, port)

    def answer(request: Any, port: int) -> Any:
        return TimeoutError() if port == 9001 else offsets(request, port)

    scripted = ScriptedCluster({ApiKey.METADATA: leaders, ApiKey.LIST_OFFSETS: answer})
    cluster = Cluster("b:9001", connector=scripted.connect)
    tp = TopicPartition("t", 0)
    assert cluster.list_offsets({tp: LATEST_TIMESTAMP})[tp].offset == 9002
    asked = [port for port, request, _ in scripted.requests if request.API_KEY == ApiKey.METADATA]
    assert asked == [9001, 9002]


def test_a_leader_that_is_not_among_the_brokers_is_waited_for() -> None:
    brokers = [metadata(TOPICS, brokers={2: 9002})] * 2 + [metadata(TOPICS, brokers=BROKERS)]
    cluster, _ = cluster_on({ApiKey.METADATA: brokers, ApiKey.LIST_OFFSETS: offsets})
    tp = TopicPartition("t", 0)
    assert cluster.list_offsets({tp: LATEST_TIMESTAMP})[tp].offset == 9001


@pytest.mark.parametrize(
    ("partition", "code", "said"),
    [
        (2, ErrorCode.LEADER_NOT_AVAILABLE, "Partition t-2 has no leader"),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Partition t-9 does not exist"),
    ],
)
def test_partitions_without_an_answer_get_their_error(
    partition: int, code: ErrorCode, said: str
) -> None:
    cluster, _ = cluster_on({ApiKey.LIST_OFFSETS: offsets})
    good, bad = TopicPartition("t", 0), TopicPartition("t", partition)
    found = cluster.list_offsets({good: LATEST_TIMESTAMP, bad: LATEST_TIMESTAMP})
    assert found[good].offset == 9001
    assert (found[bad].error, found[bad].message) == (code, said)


def test_a_broker_too_old_for_a_special_time_says_so() -> None:
    versions = {
        ApiKey.METADATA: (0, 12),
        ApiKey.LIST_OFFSETS: (0, 6),
        ApiKey.API_VERSIONS: (0, 3),
    }
    cluster, _ = cluster_on({ApiKey.LIST_OFFSETS: offsets}, versions)
    tp = TopicPartition("t", 0)
    assert cluster.list_offsets({tp: LATEST_TIMESTAMP})[tp].offset == 9001
    assert cluster.list_offsets({tp: MAX_TIMESTAMP})[tp].error is ErrorCode.UNSUPPORTED_VERSION


def test_nothing_asked_is_nothing_answered() -> None:
    cluster, scripted = cluster_on({})
    assert cluster.list_offsets({}) == {}
    assert scripted.requests == []

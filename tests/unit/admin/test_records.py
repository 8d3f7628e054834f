"""Deleting records at the leaders."""

from __future__ import annotations

from typing import Any

from kafkapy.admin.records import delete_records
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from tests.harness.scripted.scripted_topics import describing_cluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def answering(codes: list[int]) -> Any:
    """Answers with these codes one after another, the last for ever."""

    def answer(request: Any, port: int) -> DeleteRecordsResponse:
        code = codes.pop(0) if len(codes) > 1 else codes[0]
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        DeleteRecordsPartitionResult(
                            partition_index=p.partition_index,
                            low_watermark=-1 if code else p.offset,
                            error_code=code,
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


def delete(
    codes: list[int], offsets: dict[TopicPartition, int]
) -> tuple[dict[TopicPartition, int | ApiError], list[tuple[int, Any]]]:
    scripted = describing_cluster(DELETE_RECORDS=answering(codes))
    with Cluster("b:1", connector=scripted.connect) as cluster:
        found: dict[TopicPartition, int | ApiError] = {}
        delete_records(cluster, offsets, found)
    asked = [(port, r) for port, r, _ in scripted.requests if r.API_KEY == ApiKey.DELETE_RECORDS]
    return found, asked


def test_each_leader_is_asked_for_its_partitions() -> None:
    found, asked = delete([0], {T0: 5, T1: 7})
    assert found == {T0: 5, T1: 7}
    assert [(port, r.topics[0].partitions[0].offset) for port, r in asked] == [(9001, 5), (9002, 7)]


def test_a_leader_that_moved_is_looked_for() -> None:
    found, asked = delete([ErrorCode.NOT_LEADER_OR_FOLLOWER, 0], {T0: 5})
    assert found == {T0: 5}
    assert len(asked) == 2


def test_a_refusal_is_the_partitions_own() -> None:
    found, asked = delete([ErrorCode.OFFSET_OUT_OF_RANGE], {T0: 500})
    refused = found[T0]
    assert isinstance(refused, ApiError)
    assert refused.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert refused.message.startswith("The requested offset is not within the range of offsets")
    assert len(asked) == 1


def test_what_is_not_there_or_has_no_leader_has_its_error() -> None:
    found, asked = delete(
        [0], {TopicPartition("t", 2): 1, TopicPartition("no", 0): 1, TopicPartition("t", 99): 1}
    )
    codes = [e.code.name for e in found.values() if isinstance(e, ApiError)]
    assert codes == [
        "LEADER_NOT_AVAILABLE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ]
    assert asked == []

"""OffsetCommit from outside of a group: what is asked, and whose error it is."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.client.group_offsets import commit_offsets
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kafkapy.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster

FOUND = FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=3, host="b", port=9003)])


def scripted(code: ErrorCode = ErrorCode.NONE) -> ScriptedCluster:
    def commit(request: Any, port: int) -> OffsetCommitResponse:
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=p.partition_index,
                            error_code=code if p.partition_index else ErrorCode.NONE,
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return ScriptedCluster({ApiKey.FIND_COORDINATOR: FOUND, ApiKey.OFFSET_COMMIT: commit})


OFFSETS = {TopicPartition("a", 0): 5, TopicPartition("a", 1): 6, TopicPartition("b", 0): 7}


def test_offsets_go_by_topic_without_a_member() -> None:
    cluster = scripted()
    commit_offsets(Cluster("b:1", connector=cluster.connect), "g", OFFSETS, "by spark")
    (request,) = cluster.requests_of(ApiKey.OFFSET_COMMIT)
    assert (request.group_id, request.member_id) == ("g", "")
    assert request.generation_id_or_member_epoch == -1
    assert {
        (topic.name, p.partition_index): (p.committed_offset, p.committed_metadata)
        for topic in request.topics
        for p in topic.partitions
    } == {("a", 0): (5, "by spark"), ("a", 1): (6, "by spark"), ("b", 0): (7, "by spark")}


@pytest.mark.parametrize(
    "code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR]
)
def test_a_coordinator_that_loads_or_moved_is_asked_again(code: ErrorCode) -> None:
    moving, ready = scripted(code), scripted()
    commit = ready.script[ApiKey.OFFSET_COMMIT]
    answers = [moving.script[ApiKey.OFFSET_COMMIT], commit]
    cluster = ScriptedCluster({ApiKey.FIND_COORDINATOR: FOUND, ApiKey.OFFSET_COMMIT: answers})
    properties = {"retry.backoff.ms": "0"}
    commit_offsets(Cluster("b:1", properties, connector=cluster.connect), "g", OFFSETS)
    assert len(cluster.requests_of(ApiKey.OFFSET_COMMIT)) == 2
    assert len(cluster.requests_of(ApiKey.FIND_COORDINATOR)) == 2


def test_a_commit_is_repeated_when_the_coordinator_hangs() -> None:
    """The same offsets once more change nothing."""
    answers = [TimeoutError(), scripted().script[ApiKey.OFFSET_COMMIT]]
    cluster = ScriptedCluster({ApiKey.FIND_COORDINATOR: FOUND, ApiKey.OFFSET_COMMIT: answers})
    commit_offsets(Cluster("b:1", connector=cluster.connect), "g", OFFSETS)
    assert len(cluster.requests_of(ApiKey.OFFSET_COMMIT)) == 2


def test_a_refusal_names_group_and_partition() -> None:
    cluster = Cluster("b:1", connector=scripted(ErrorCode.UNKNOWN_MEMBER_ID).connect)
    with pytest.raises(ApiError, match="Group g, a-1: UNKNOWN_MEMBER_ID"):
        commit_offsets(cluster, "g", OFFSETS)

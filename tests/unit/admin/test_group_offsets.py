"""Committed offsets: every shape of OffsetFetch, commits that hit a moved coordinator, deletes."""

from __future__ import annotations

import pytest

from kafkapy.admin.group_offsets import commit_offsets, committed_offsets, delete_offsets
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkapy.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster
from tests.harness.scripted.scripted_groups import VERSIONS, group_cluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def cluster_on(scripted: ScriptedCluster) -> Cluster:
    return Cluster("b:1", connector=scripted.connect)


def test_offsets_of_a_group() -> None:
    found = committed_offsets(cluster_on(group_cluster()), "idle")
    assert {tp: each.offset for tp, each in found.items()} == {T0: 7, T1: 9}
    assert committed_offsets(cluster_on(group_cluster()), "nobody") == {}


def test_brokers_before_3_0_answer_for_one_group() -> None:
    partitions = [
        OffsetFetchResponsePartition(partition_index=1, committed_offset=5, metadata="m"),
        OffsetFetchResponsePartition(partition_index=0, committed_offset=-1),
    ]
    answer = OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=partitions)])
    scripted = group_cluster(OFFSET_FETCH=answer)
    scripted.versions = {**VERSIONS, ApiKey.OFFSET_FETCH: (0, 7)}
    found = committed_offsets(cluster_on(scripted), "g")
    assert list(found) == [T1]
    assert (found[T1].offset, found[T1].metadata) == (5, "m")
    asked = scripted.requests_of(ApiKey.OFFSET_FETCH)[0]
    assert (asked.group_id, asked.topics) == ("g", None)


def commit_answer(code: int) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    return OffsetCommitResponse(
        topics=[OffsetCommitResponseTopic(name="t", partitions=[partition])]
    )


def test_a_commit_from_outside_has_no_member_and_no_generation() -> None:
    scripted = group_cluster()
    commit_offsets(cluster_on(scripted), "g", {T0: 3, T1: 4})
    (asked,) = scripted.requests_of(ApiKey.OFFSET_COMMIT)
    assert (asked.group_id, asked.member_id, asked.generation_id_or_member_epoch) == ("g", "", -1)
    (topic,) = asked.topics
    committed = [(p.partition_index, p.committed_offset) for p in topic.partitions]
    assert committed == [(0, 3), (1, 4)]
    assert {p.committed_leader_epoch for p in topic.partitions} == {-1}


def test_a_commit_that_hits_a_moved_coordinator_is_sent_again() -> None:
    answers = [commit_answer(ErrorCode.NOT_COORDINATOR), commit_answer(ErrorCode.NONE)]
    scripted = group_cluster(OFFSET_COMMIT=answers)
    commit_offsets(cluster_on(scripted), "g", {T0: 3})
    assert len(scripted.requests_of(ApiKey.OFFSET_COMMIT)) == 2


def test_reads_and_commits_are_repeated_when_the_coordinator_hangs() -> None:
    scripted = group_cluster(OFFSET_COMMIT=[TimeoutError(), commit_answer(ErrorCode.NONE)])
    commit_offsets(cluster_on(scripted), "g", {T0: 3})
    assert len(scripted.requests_of(ApiKey.OFFSET_COMMIT)) == 2
    scripted = group_cluster(OFFSET_FETCH=[TimeoutError(), OffsetFetchResponse()])
    assert committed_offsets(cluster_on(scripted), "g") == {}


def test_a_refused_commit_is_an_error() -> None:
    scripted = group_cluster(OFFSET_COMMIT=commit_answer(ErrorCode.UNKNOWN_MEMBER_ID))
    refusal = r"following partitions: \[t-0\]: The coordinator is not aware of this member"
    with pytest.raises(ApiError, match=refusal):
        commit_offsets(cluster_on(scripted), "g", {T0: 3})


def test_deletes_tell_of_each_partition() -> None:
    results = delete_offsets(cluster_on(group_cluster()), "busy", [T0, T1])
    assert {error.code for error in results.values() if error} == {
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    }
    assert delete_offsets(cluster_on(group_cluster()), "idle", [T0]) == {T0: None}
    with pytest.raises(ApiError, match="The group id does not exist"):
        delete_offsets(cluster_on(group_cluster()), "nobody", [T0])

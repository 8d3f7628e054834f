"""Partitions on the move; silence where a broker cannot or may not tell."""

import pytest

from kafkapy.admin.batches import PER_REQUEST
from kafkapy.admin.reassignments import (
    Reassignment,
    alter_reassignments,
    list_reassignments,
    running_reassignments,
)
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kafkapy.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster
from tests.harness.scripted.scripted_topics import describing_cluster


def cluster_on(answer: object) -> Cluster:
    scripted = describing_cluster(LIST_PARTITION_REASSIGNMENTS=answer)
    return Cluster("b:1", connector=scripted.connect)


def test_all_of_them() -> None:
    cluster = Cluster("b:1", connector=describing_cluster().connect)
    assert list_reassignments(cluster) == {
        TopicPartition("t", 4): Reassignment((3,), (2,), (1, 2, 3))
    }


def test_an_old_broker_has_none() -> None:
    scripted = describing_cluster()
    key = ApiKey.LIST_PARTITION_REASSIGNMENTS
    scripted.versions = {k: v for k, v in scripted.versions.items() if k != key}
    assert list_reassignments(Cluster("b:1", connector=scripted.connect)) == {}


def test_who_may_not_see_sees_none() -> None:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert list_reassignments(cluster_on(ListPartitionReassignmentsResponse(error_code=code))) == {}


def test_other_refusals_are_errors() -> None:
    refused = ListPartitionReassignmentsResponse(error_code=-1, error_message="broken")
    with pytest.raises(ApiError, match="broken"):
        list_reassignments(cluster_on(refused))


def test_named_partitions_are_asked_for_by_topic() -> None:
    scripted = describing_cluster()
    asked = [TopicPartition("t", 4), TopicPartition("u", 0), TopicPartition("t", 1)]
    running_reassignments(Cluster("b:1", connector=scripted.connect), asked)
    (request,) = scripted.requests_of(ApiKey.LIST_PARTITION_REASSIGNMENTS)
    assert [(t.name, t.partition_indexes) for t in request.topics] == [("t", [4, 1]), ("u", [0])]


def altering(*rows: tuple[int, int, str | None], error: int = 0) -> ScriptedCluster:
    """Answers AlterPartitionReassignments with (partition, code, message) of topic t."""
    partitions = [
        ReassignablePartitionResponse(partition_index=i, error_code=code, error_message=message)
        for i, code, message in rows
    ]
    return describing_cluster(
        ALTER_PARTITION_REASSIGNMENTS=AlterPartitionReassignmentsResponse(
            error_code=error, responses=[ReassignableTopicResponse(name="t", partitions=partitions)]
        )
    )


def test_moves_begin_and_refusals_are_the_partitions_own() -> None:
    scripted = altering((0, 0, None), (1, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no such broker"))
    targets = {TopicPartition("t", 0): (1, 2), TopicPartition("t", 1): (9,)}
    refused = alter_reassignments(Cluster("b:1", connector=scripted.connect), targets)
    assert {tp: e.message for tp, e in refused.items()} == {
        TopicPartition("t", 1): "no such broker"
    }


def test_many_moves_are_several_requests() -> None:
    """The controller makes one after the other. All in one request exceeded the timeout."""
    scripted = altering()
    targets = {TopicPartition("t", index): None for index in range(2 * PER_REQUEST + 1)}
    alter_reassignments(Cluster("b:1", connector=scripted.connect), targets)
    requests = scripted.requests_of(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
    sent = [{p.partition_index for p in request.topics[0].partitions} for request in requests]
    assert [len(partitions) for partitions in sent] == [PER_REQUEST, PER_REQUEST, 1]
    assert set().union(*sent) == {tp.partition for tp in targets}


def test_a_reassignment_refused_as_a_whole() -> None:
    scripted = altering(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError, match="Cluster authorization failed"):
        alter_reassignments(
            Cluster("b:1", connector=scripted.connect), {TopicPartition("t", 0): None}
        )

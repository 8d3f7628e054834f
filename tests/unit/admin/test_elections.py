"""Asking for elections."""

from __future__ import annotations

import pytest

from kafkapy.admin.elections import ElectionType, elect_leaders
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster
from tests.harness.scripted.scripted_topics import describing_cluster

ANSWER = ElectLeadersResponse(
    replica_election_results=[
        ReplicaElectionResult(
            topic="t",
            partition_result=[
                PartitionResult(partition_id=0),
                PartitionResult(partition_id=1, error_code=ErrorCode.ELECTION_NOT_NEEDED),
            ],
        )
    ]
)


def scripted(answer: object = ANSWER) -> ScriptedCluster:
    return describing_cluster(ELECT_LEADERS=answer)


def test_each_partition_has_its_answer() -> None:
    cluster = scripted()
    asked = [TopicPartition("t", 0), TopicPartition("u", 4), TopicPartition("t", 1)]
    found = elect_leaders(Cluster("b:1", connector=cluster.connect), ElectionType.UNCLEAN, asked)
    assert found[TopicPartition("t", 0)] is None
    error = found[TopicPartition("t", 1)]
    assert error is not None
    assert error.message == "Leader election not needed for topic partition."
    (request,) = cluster.requests_of(ApiKey.ELECT_LEADERS)
    assert request.election_type == 1
    assert request.topic_partitions == [
        TopicPartitions(topic="t", partitions=[0, 1]),
        TopicPartitions(topic="u", partitions=[4]),
    ]


def test_the_next_controller_is_requested_when_the_partitions_are_refused() -> None:
    """Apache Kafka's former controller has no error for the request."""
    refused = [PartitionResult(partition_id=0, error_code=ErrorCode.NOT_CONTROLLER)]
    former = ReplicaElectionResult(topic="t", partition_result=refused)
    cluster = scripted([ElectLeadersResponse(replica_election_results=[former]), ANSWER])
    found = elect_leaders(Cluster("b:1", connector=cluster.connect), ElectionType.PREFERRED)
    assert found[TopicPartition("t", 0)] is None


def test_all_partitions_is_null() -> None:
    cluster = scripted()
    elect_leaders(Cluster("b:1", connector=cluster.connect), ElectionType.PREFERRED)
    assert cluster.requests_of(ApiKey.ELECT_LEADERS)[0].topic_partitions is None


def test_a_broker_that_knows_no_unclean_election_is_not_asked_for_a_preferred_one() -> None:
    cluster = scripted()
    cluster.versions = {**cluster.versions, ApiKey.ELECT_LEADERS: (0, 0)}
    with pytest.raises(ApiError) as refused:
        elect_leaders(Cluster("b:1", connector=cluster.connect), ElectionType.UNCLEAN)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert cluster.requests_of(ApiKey.ELECT_LEADERS) == []


def test_a_refusal_of_the_whole() -> None:
    cluster = scripted(ElectLeadersResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    with pytest.raises(ApiError, match="Cluster authorization failed"):
        elect_leaders(Cluster("b:1", connector=cluster.connect), ElectionType.PREFERRED)

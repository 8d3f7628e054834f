"""A cluster that is read and not changed."""

from __future__ import annotations

from kafkapy.admin.dry_run import MUTATING_APIS, DryRunCluster, PlannedRequest
from kafkapy.admin.reassignments import alter_reassignments, running_reassignments
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from tests.harness.scripted.scripted_topics import describing_cluster


def test_reads_are_answered_and_changes_are_written_down() -> None:
    scripted = describing_cluster()
    with DryRunCluster("b:1", connector=scripted.connect) as cluster:
        assert len(running_reassignments(cluster)) == 1
        targets = {TopicPartition("t", 0): (2, 1), TopicPartition("t", 1): None}
        assert alter_reassignments(cluster, targets) == {}
    rows = [
        {"partition_index": 0, "replicas": [2, 1]},
        {"partition_index": 1, "replicas": None},
    ]
    body = {"timeout_ms": 30000, "topics": [{"name": "t", "partitions": rows}]}
    assert cluster.requests == [PlannedRequest("AlterPartitionReassignments", 0, 1, body)]
    assert not {key for _, r, _ in scripted.requests if (key := r.API_KEY) in MUTATING_APIS}


def test_the_version_is_the_one_that_would_be_spoken() -> None:
    scripted = describing_cluster()
    scripted.versions = {**scripted.versions, ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 0)}
    from kafkapy.admin.configs import Resource, incremental_alter_configs
    from kafkapy.common.config_def import ResourceType

    with DryRunCluster("b:1", connector=scripted.connect) as cluster:
        incremental_alter_configs(cluster, Resource(ResourceType.BROKER, "2"), {"a": "b"}, ["c"])
    (request,) = cluster.requests
    assert (request.version, request.broker_id) == (0, 2)

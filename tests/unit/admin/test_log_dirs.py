"""Log directories as brokers describe them, and moves between them."""

from __future__ import annotations

import pytest

from kafkapy.admin.log_dirs import (
    LogDir,
    Replica,
    ReplicaLog,
    ReplicaPlace,
    alter_replica_log_dirs,
    describe_log_dirs,
    places,
)
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
)
from kafkapy.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster
from tests.harness.scripted.scripted_topics import describing_cluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def row(index: int, size: int, *, future: bool = False) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=index, partition_size=size, offset_lag=0, is_future_key=future
    )


DIRS = DescribeLogDirsResponse(
    results=[
        DescribeLogDirsResult(
            log_dir="/a",
            topics=[DescribeLogDirsTopic(name="t", partitions=[row(0, 10), row(1, 20)])],
            total_bytes=100,
            usable_bytes=50,
        ),
        DescribeLogDirsResult(
            log_dir="/b",
            topics=[DescribeLogDirsTopic(name="t", partitions=[row(0, 4, future=True)])],
        ),
        DescribeLogDirsResult(log_dir="/c", error_code=ErrorCode.KAFKA_STORAGE_ERROR),
    ]
)


def cluster_on(scripted: ScriptedCluster) -> Cluster:
    return Cluster("b:1", connector=scripted.connect)


def test_directories_with_their_logs() -> None:
    scripted = describing_cluster(DESCRIBE_LOG_DIRS=DIRS)
    found = describe_log_dirs(cluster_on(scripted), 2, [T0, T1])
    assert found == [
        LogDir(
            "/a",
            ErrorCode.NONE,
            {(T0, False): ReplicaLog(10, 0, False), (T1, False): ReplicaLog(20, 0, False)},
            100,
            50,
        ),
        LogDir("/b", ErrorCode.NONE, {(T0, True): ReplicaLog(4, 0, True)}),
        LogDir("/c", ErrorCode.KAFKA_STORAGE_ERROR, {}),
    ]
    assert places(found) == {T0: ReplicaPlace("/a", "/b"), T1: ReplicaPlace("/a")}
    asked = [(port, r.topics) for port, r, _ in scripted.requests if hasattr(r, "topics")][-1]
    assert asked == (9002, [DescribableLogDirTopic(topic="t", partitions=[0, 1])])


def test_a_refusal() -> None:
    refused = DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError, match="Cluster authorization failed"):
        describe_log_dirs(cluster_on(describing_cluster(DESCRIBE_LOG_DIRS=refused)), 1)


def test_a_refusal_of_a_broker_before_kafka_3_2_is_not_a_broker_without_logs() -> None:
    """Their response has no error code: an unauthorized client gets no directory."""
    scripted = describing_cluster(DESCRIBE_LOG_DIRS=DescribeLogDirsResponse())
    scripted.versions = {**scripted.versions, ApiKey.DESCRIBE_LOG_DIRS: (0, 2)}
    with pytest.raises(ApiError, match="Cluster authorization failed"):
        describe_log_dirs(cluster_on(scripted), 1)


def test_moves_are_asked_for_by_directory_and_refused_by_partition() -> None:
    scripted = describing_cluster(
        ALTER_REPLICA_LOG_DIRS=AlterReplicaLogDirsResponse(
            results=[
                AlterReplicaLogDirTopicResult(
                    topic_name="t",
                    partitions=[
                        AlterReplicaLogDirPartitionResult(partition_index=0),
                        AlterReplicaLogDirPartitionResult(
                            partition_index=1, error_code=ErrorCode.LOG_DIR_NOT_FOUND
                        ),
                    ],
                )
            ]
        )
    )
    refused = alter_replica_log_dirs(cluster_on(scripted), 2, {T0: "/b", T1: "/nope"})
    assert {tp: error.code for tp, error in refused.items()} == {T1: ErrorCode.LOG_DIR_NOT_FOUND}
    (request,) = scripted.requests_of(ApiKey.ALTER_REPLICA_LOG_DIRS)
    assert request.dirs == [
        AlterReplicaLogDir(path="/b", topics=[AlterReplicaLogDirTopic(name="t", partitions=[0])]),
        AlterReplicaLogDir(
            path="/nope", topics=[AlterReplicaLogDirTopic(name="t", partitions=[1])]
        ),
    ]


def test_a_replica_is_written_as_kafka_does() -> None:
    assert str(Replica("a-b", 3, 7)) == "a-b-3-7"
    assert Replica("t", 0, 7).topic_partition == T0

"""AlterReplicaLogDirs (key 34), versions 0-2.

Behaviour: copies logs of this broker to another of its log directories, in the background. The
complete copy replaces the log. A request with the log's current directory cancels the copy. A
replica that does not exist yet gets REPLICA_NOT_AVAILABLE, and will be created in the requested
directory.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.requests.turns import ROW_UNITS, Work


def handle(
    replicas: ReplicaManager, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> Work[AlterReplicaLogDirsResponse]:
    """Begin or cancel each move. The response does not wait for it."""
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for wanted in request.dirs:
        for topic in wanted.topics:
            result = topics.setdefault(
                topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=[])
            )
            for index in topic.partitions:
                error = _move(replicas, TopicPartition(topic.name, index), wanted.path)
                result.partitions.append(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
                )
                yield ROW_UNITS
            yield 1
        yield 1
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def _move(replicas: ReplicaManager, topic_partition: TopicPartition, path: str) -> ErrorCode:
    if topic_partition in replicas.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    try:
        replicas.log_manager.future_logs.move(topic_partition, path)
    except ApiError as refusal:
        return refusal.code
    except LogDirFailure as failure:
        replicas.log_dir_failed(failure)
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE


def refuse(
    request: AlterReplicaLogDirsRequest, error: ApiError, version: int
) -> AlterReplicaLogDirsResponse:
    """The same error for every partition."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error.code)
                    for index in topic.partitions
                ],
            )
            for wanted in request.dirs
            for topic in wanted.topics
        ]
    )

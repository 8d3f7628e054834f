"""DescribeTopicPartitions (key 75), version 0.

Behaviour: returns the partitions of the requested topics, or of all topics, by name, at most
`responsePartitionLimit` and 2,000 at a time. `nextCursor` is the start of the next request
(KIP-966). ZooKeeper mode has no eligible leader replicas, so both lists are empty.
"""

from __future__ import annotations

from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import INTERNAL_TOPICS, validate_topic_name
from kafkapy.metadata.image import TopicImage
from kafkapy.protocol.messages.describe_topic_partitions import (
    CursorResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.authorized_operations import TOPIC_OPERATIONS
from kafkapy.server.api.cluster_view import ClusterView
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.turns import ROW_UNITS, Work

_PARTITIONS_MAX: Final = 2000
"""Kafka: max.request.partition.size.limit."""


def handle(
    cluster: ClusterView,
    authorization: Authorization,
    context: RequestContext,
    request: DescribeTopicPartitionsRequest,
) -> Work[DescribeTopicPartitionsResponse]:
    """Describe topics until the limit is reached."""
    topics = cluster.image.topics
    cursor = request.cursor
    if cursor is not None and cursor.partition_index < 0:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "DescribeTopicPartitionsRequest cursor partition must be valid: "
            f"{cursor.partition_index}",
        )
    partitions_left = max(1, min(request.response_partition_limit, _PARTITIONS_MAX))
    reachable = {node for node, *_ in cluster.nodes(context.listener)}
    response = DescribeTopicPartitionsResponse()
    requests_all = not request.topics
    refused = []
    for name in sorted(topics) if requests_all else sorted({row.name for row in request.topics}):
        if cursor is not None and name < cursor.topic_name:
            continue
        yield ROW_UNITS
        topic = topics.get(name)
        if not authorization.is_allowed(context, Operation.DESCRIBE, ResourceKind.TOPIC, name):
            if not requests_all:
                refused.append(_error_row(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif topic is None:
            response.topics.append(_error_row(name, _topic_error(name)))
        elif partitions_left == 0:
            response.next_cursor = CursorResponse(topic_name=name, partition_index=0)
            break
        else:
            first = cursor.partition_index if cursor and cursor.topic_name == name else 0
            indexes = sorted(index for index in topic.partitions if index >= first)
            row = _topic(topic, indexes[:partitions_left], reachable)
            row.topic_authorized_operations = authorization.allowed_operations(
                context, TOPIC_OPERATIONS, ResourceKind.TOPIC, name
            )
            response.topics.append(row)
            yield 2 * len(row.partitions)
            if len(indexes) > partitions_left:
                response.next_cursor = CursorResponse(
                    topic_name=name, partition_index=indexes[partitions_left]
                )
                break
            partitions_left -= len(indexes)
    response.topics += refused
    return response


def _topic(
    topic: TopicImage, indexes: list[int], reachable: set[int]
) -> DescribeTopicPartitionsResponseTopic:
    rows = []
    for index in indexes:
        partition = topic.partitions[index]
        has_leader = partition.leader in reachable
        rows.append(
            DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=partition.leader if has_leader else -1,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=list(partition.offline_replicas),
            )
        )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=rows,
    )


def _topic_error(name: str) -> ErrorCode:
    try:
        validate_topic_name(name)
    except ApiError as refusal:
        return refusal.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _error_row(name: str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=error, name=name)


def refuse(
    request: DescribeTopicPartitionsRequest, error: ApiError, version: int
) -> DescribeTopicPartitionsResponse:
    """The same error for every requested topic."""
    return DescribeTopicPartitionsResponse(
        topics=[_error_row(row.name, error.code) for row in request.topics]
    )

"""OffsetForLeaderEpoch (key 23), versions 0-4.

Behaviour: the end offset of an epoch in this leader's log (KIP-101, KIP-279, KIP-320), fenced by
leader epoch.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.requests.turns import ROW_UNITS, Work


def handle(
    replicas: ReplicaManager, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> Work[OffsetForLeaderEpochResponse]:
    """Answer each partition from its leader-epoch cache."""
    topics = []
    for topic in request.topics:
        rows = []
        for wanted in topic.partitions:
            row = EpochEndOffset(partition=wanted.partition)
            rows.append(row)
            try:
                partition = replicas.get(topic.topic, wanted.partition)
                partition.check_leader(wanted.current_leader_epoch)
                epoch, end = partition.log.end_offset_for_epoch(wanted.leader_epoch)
                row.leader_epoch, row.end_offset = epoch, end
            except ApiError as error:
                row.error_code = error.code
            yield ROW_UNITS
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=rows))
        yield 1
    return OffsetForLeaderEpochResponse(topics=topics)


def refuse(
    request: OffsetForLeaderEpochRequest, error: ApiError, version: int
) -> OffsetForLeaderEpochResponse:
    """The same error for every partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=wanted.partition, error_code=error.code)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )

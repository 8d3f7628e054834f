"""ShareGroupHeartbeat (key 76), version 1 (KIP-932).

Behaviour: the response is UNSUPPORTED_VERSION, as in Apache Kafka 3.9, unless every registered
broker supports share groups. The response is sent when the state that it reports is replicated.
"""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeatResult
from kafkapy.coordinator.groups.share.messages import ShareHeartbeat
from kafkapy.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.handler_support import may_describe_topics
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import Work


def handle(
    groups: GroupService,
    features: ClusterFeatures,
    authorization: Authorization,
    context: RequestContext,
    request: ShareGroupHeartbeatRequest,
) -> Work[Outcome[ShareGroupHeartbeatResponse]]:
    """Keep a member in its group, and return its assignment."""
    if not features.has_share_groups:
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    names = request.subscribed_topic_names or ()
    if not (yield from may_describe_topics(authorization, context, names)):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    heartbeat = ShareHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        rack_id=request.rack_id,
        subscribed_names=request.subscribed_topic_names,
        client_id=context.header.client_id or "",
        client_host=f"/{context.client_host}",
    )
    return groups.call(groups.coordinator.share_heartbeat, heartbeat, _response)


def _response(result: ConsumerHeartbeatResult) -> ShareGroupHeartbeatResponse:
    assignment = None
    if result.assignment is not None:
        rows = [
            TopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
            for topic_id, indexes in result.assignment.items()
        ]
        assignment = Assignment(topic_partitions=rows)
    return ShareGroupHeartbeatResponse(
        error_code=result.error,
        error_message=result.message,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=assignment,
    )

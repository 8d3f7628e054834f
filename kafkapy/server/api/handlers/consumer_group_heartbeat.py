"""ConsumerGroupHeartbeat (key 68), versions 0-1 (KIP-848).

Behaviour: the response is UNSUPPORTED_VERSION, as in Apache Kafka 3.9, unless every registered
broker supports consumer groups. The response is sent when the state that it reports is replicated.
Version notes: v1 has regular expressions in subscriptions, and member ids that clients generate.
"""

from __future__ import annotations

from functools import partial

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.consumer.assignment import Assignment as Partitions
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatResult
from kafkapy.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitionsResponse,
)
from kafkapy.security.acls import Operation, ResourceKind
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
    request: ConsumerGroupHeartbeatRequest,
) -> Work[Outcome[ConsumerGroupHeartbeatResponse]]:
    """Keep a member in its group, and return its assignment."""
    if not features.has_consumer_groups:
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    names = request.subscribed_topic_names or ()
    if not (yield from may_describe_topics(authorization, context, names)):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    heartbeat = ConsumerHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_names=request.subscribed_topic_names,
        subscribed_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=_owned(request),
        client_id=context.header.client_id or "",
        client_host=f"/{context.client_host}",
        requires_member_id=context.version >= 1,
        is_visible=partial(
            authorization.is_allowed, context, Operation.DESCRIBE, ResourceKind.TOPIC
        ),
    )
    return groups.call(groups.coordinator.consumer_heartbeat, heartbeat, _response)


def _owned(request: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    if request.topic_partitions is None:
        return None
    return {
        row.topic_id: frozenset(row.partitions)
        for row in request.topic_partitions
        if row.partitions
    }


def _response(result: ConsumerHeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if result.assignment is not None:
        assignment = Assignment(
            topic_partitions=[
                TopicPartitionsResponse(topic_id=topic_id, partitions=sorted(indexes))
                for topic_id, indexes in result.assignment.items()
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        error_code=result.error,
        error_message=result.message,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=assignment,
    )

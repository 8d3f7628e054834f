"""ConsumerGroupDescribe (key 69), versions 0-1 (KIP-848).

Behaviour: classic and unknown groups get GROUP_ID_NOT_FOUND. All rows get UNSUPPORTED_VERSION
unless every registered broker supports consumer groups. Version notes: v1 has the protocol of each
member, classic or consumer.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.coordinator.groups.consumer.messages import (
    DescribeConsumerGroups,
    DescribeConsumerGroupsResult,
    DescribedConsumer,
    NamedPartitions,
)
from kafkapy.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kafkapy.server.api.authorized_operations import GROUP_OPERATIONS, NOT_REQUESTED
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.turns import ROW_UNITS, Work, hash_units

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


def handle(
    groups: GroupService,
    features: ClusterFeatures,
    context: RequestContext,
    request: ConsumerGroupDescribeRequest,
) -> Work[ConsumerGroupDescribeResponse]:
    """Describe each requested group."""
    if not features.has_consumer_groups:
        return refuse(request, ApiError(ErrorCode.UNSUPPORTED_VERSION), context.version)
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_REQUESTED
    rows: list[DescribedGroup] = []
    for group_id in dict.fromkeys(request.group_ids):
        described = groups.call_now(
            groups.coordinator.describe_consumer_groups,
            DescribeConsumerGroups([group_id]),
            lambda result: _rows(result, operations),
        )
        rows += described
        members = (member for group in described for member in group.members)
        yield ROW_UNITS + hash_units(group_id) + sum(map(_units, members))
    return ConsumerGroupDescribeResponse(groups=rows)


def _units(member: Member) -> int:
    topics = (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions)
    return 1 + sum(len(topic.partitions) for topic in topics)


def _rows(result: DescribeConsumerGroupsResult, operations: int) -> list[DescribedGroup]:
    return [
        DescribedGroup(
            error_code=group.error,
            error_message=group.message,
            group_id=group.group_id,
            group_state=group.state,
            group_epoch=group.epoch,
            assignment_epoch=group.target_epoch,
            assignor_name=group.assignor,
            members=[_member(member) for member in group.members],
            authorized_operations=operations if group.error is ErrorCode.NONE else NOT_REQUESTED,
        )
        for group in result.groups
    ]


def _member(member: DescribedConsumer) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=[*member.subscribed_names],
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(member.target),
        member_type=_CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER,
    )


def _assignment(rows: Sequence[NamedPartitions]) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=row.topic_id, topic_name=row.topic, partitions=[*row.partitions]
            )
            for row in rows
        ]
    )


def refuse(
    request: ConsumerGroupDescribeRequest, error: ApiError, version: int
) -> ConsumerGroupDescribeResponse:
    """The same error for every group."""
    return ConsumerGroupDescribeResponse(
        groups=[DescribedGroup(error_code=error.code, group_id=g) for g in request.group_ids]
    )

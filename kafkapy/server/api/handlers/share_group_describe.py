"""ShareGroupDescribe (key 77), version 1 (KIP-932).

Behaviour: groups of other protocols and unknown groups get GROUP_ID_NOT_FOUND. All rows get
UNSUPPORTED_VERSION unless every registered broker supports share groups.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.coordinator.groups.consumer.messages import (
    DescribeConsumerGroupsResult,
    DescribedConsumer,
)
from kafkapy.coordinator.groups.share.messages import DescribeShareGroups
from kafkapy.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from kafkapy.server.api.authorized_operations import GROUP_OPERATIONS, NOT_REQUESTED
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.turns import ROW_UNITS, Work, hash_units


def handle(
    groups: GroupService,
    features: ClusterFeatures,
    context: RequestContext,
    request: ShareGroupDescribeRequest,
) -> Work[ShareGroupDescribeResponse]:
    """Describe each requested group."""
    if not features.has_share_groups:
        return refuse(request, ApiError(ErrorCode.UNSUPPORTED_VERSION), context.version)
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_REQUESTED
    rows: list[DescribedGroup] = []
    for group_id in dict.fromkeys(request.group_ids):
        described = groups.call_now(
            groups.coordinator.describe_share_groups,
            DescribeShareGroups([group_id]),
            lambda result: _rows(result, operations),
        )
        rows += described
        members = (member for group in described for member in group.members)
        yield ROW_UNITS + hash_units(group_id) + sum(map(_units, members))
    return ShareGroupDescribeResponse(groups=rows)


def _units(member: Member) -> int:
    return 1 + sum(len(topic.partitions) for topic in member.assignment.topic_partitions)


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
    rows = [
        TopicPartitions(topic_id=row.topic_id, topic_name=row.topic, partitions=[*row.partitions])
        for row in member.assigned
    ]
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=[*member.subscribed_names],
        assignment=Assignment(topic_partitions=rows),
    )


def refuse(
    request: ShareGroupDescribeRequest, error: ApiError, version: int
) -> ShareGroupDescribeResponse:
    """The same error for every group."""
    return ShareGroupDescribeResponse(
        groups=[DescribedGroup(error_code=error.code, group_id=g) for g in request.group_ids]
    )

"""DescribeGroups (key 15), versions 0-5.

Behaviour: an unknown group is described as Dead, without an error, as Kafka 3.9 does.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.coordinator.groups.messages import DescribeGroups, DescribeGroupsResult
from kafkapy.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkapy.server.api.authorized_operations import GROUP_OPERATIONS, NOT_REQUESTED
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.turns import ROW_UNITS, Work, hash_units


def handle(
    groups: GroupService, context: RequestContext, request: DescribeGroupsRequest
) -> Work[DescribeGroupsResponse]:
    """Describe each requested group."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_REQUESTED
    rows: list[DescribedGroup] = []
    for group_id in dict.fromkeys(request.groups):
        described = groups.call_now(
            groups.coordinator.describe_groups,
            DescribeGroups([group_id]),
            lambda result: _response(result, operations),
        )
        rows += described.groups
        members = sum(len(group.members) for group in described.groups)
        yield ROW_UNITS + hash_units(group_id) + members
    return DescribeGroupsResponse(groups=rows)


def _response(result: DescribeGroupsResult, operations: int) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[
            DescribedGroup(
                error_code=group.error,
                group_id=group.group_id,
                group_state=group.state,
                protocol_type=group.protocol_type,
                protocol_data=group.protocol_data,
                members=[
                    DescribedGroupMember(
                        member_id=m.member_id,
                        group_instance_id=m.group_instance_id,
                        client_id=m.client_id,
                        client_host=m.client_host,
                        member_metadata=m.metadata,
                        member_assignment=m.assignment,
                    )
                    for m in group.members
                ],
                authorized_operations=operations
                if group.error is ErrorCode.NONE
                else NOT_REQUESTED,
            )
            for group in result.groups
        ]
    )


def refuse(request: DescribeGroupsRequest, error: ApiError, version: int) -> DescribeGroupsResponse:
    """The same error for every group."""
    return DescribeGroupsResponse(
        groups=[DescribedGroup(error_code=error.code, group_id=g) for g in request.groups]
    )

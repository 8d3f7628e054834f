"""SyncGroup (key 14), versions 0-5.

Behaviour: followers wait for the leader's assignment, which is stored before it is sent. From
version 5 on a request must name its protocol (`KafkaApis.handleSyncGroupRequest`, KIP-559).
"""

from __future__ import annotations

from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.messages import SyncGroup, SyncGroupResult
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.outcomes import Outcome

_NAMES_PROTOCOL_VERSION: Final = 5


def handle(
    groups: GroupService, context: RequestContext, request: SyncGroupRequest
) -> Outcome[SyncGroupResponse]:
    """Store or return the assignment of a generation."""
    if context.version >= _NAMES_PROTOCOL_VERSION and None in (
        request.protocol_type,
        request.protocol_name,
    ):
        return _response(SyncGroupResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    coordinator_request = SyncGroup(
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={a.member_id: bytes(a.assignment) for a in request.assignments},
    )
    return groups.call(groups.coordinator.sync_group, coordinator_request, _response)


def _response(result: SyncGroupResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )

"""ListGroups (key 16), versions 0-5.

Version notes: v4 filters by state, v5 by type.
"""

from __future__ import annotations

from kafkapy.coordinator.groups.messages import ListGroups, ListGroupsResult
from kafkapy.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.turns import ROW_UNITS, ROWS_AT_ONCE, Work


def handle(
    groups: GroupService, context: RequestContext, request: ListGroupsRequest
) -> Work[ListGroupsResponse]:
    """List the groups that this broker coordinates."""
    wanted = ListGroups(request.states_filter, request.types_filter)
    return groups.call_now(groups.coordinator.list_groups, wanted, _response)


def _response(result: ListGroupsResult) -> Work[ListGroupsResponse]:
    rows: list[ListedGroup] = []
    for piece in result.groups:
        rows += [
            ListedGroup(
                group_id=g.group_id,
                protocol_type=g.protocol_type,
                group_state=g.state,
                group_type=g.group_type,
            )
            for g in piece
        ]
        yield ROWS_AT_ONCE + ROW_UNITS * len(piece)
    return ListGroupsResponse(error_code=result.error, groups=rows)

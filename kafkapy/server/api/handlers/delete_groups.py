"""DeleteGroups (key 42), versions 0-2 (KIP-229)."""

from __future__ import annotations

from functools import partial

from kafkapy.common.errors import ApiError
from kafkapy.coordinator.groups.messages import DeleteGroups, DeleteGroupsResult
from kafkapy.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkapy.server.api.handler_support import gather
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import ROW_UNITS, ROWS_AT_ONCE, Work, pieces


def handle(
    groups: GroupService, context: RequestContext, request: DeleteGroupsRequest
) -> Work[Outcome[DeleteGroupsResponse]]:
    """Delete empty groups and their offsets."""
    starts = [
        partial(groups.ask, groups.coordinator.delete_groups, DeleteGroups(few))
        for few in pieces(list(dict.fromkeys(request.groups_names)))
    ]
    return gather(starts, _response, ROW_UNITS * ROWS_AT_ONCE)


def _response(results: list[DeleteGroupsResult]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=error)
            for result in results
            for group_id, error in result.errors.items()
        ]
    )


def refuse(request: DeleteGroupsRequest, error: ApiError, version: int) -> DeleteGroupsResponse:
    """The same error for every group."""
    return _response([DeleteGroupsResult(dict.fromkeys(request.groups_names, error.code))])

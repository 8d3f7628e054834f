"""DeleteGroups (key 42), versions 0-2 (KIP-229)."""

from __future__ import annotations

from typing import Any

from kafkapy.common.errors import ApiError
from kafkapy.coordinator.messages import DeleteGroups, DeleteGroupsResult
from kafkapy.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkapy.server.request import RequestContext


def handle(context: RequestContext, request: DeleteGroupsRequest) -> Any:
    """Delete empty groups and their offsets."""
    groups = context.broker.groups
    return groups.call(
        groups.coordinator.delete_groups, DeleteGroups(request.groups_names), _response
    )


def _response(result: DeleteGroupsResult) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=error)
            for group_id, error in result.errors.items()
        ]
    )


def refuse(request: DeleteGroupsRequest, error: ApiError, version: int) -> DeleteGroupsResponse:
    """The same error for every group."""
    return _response(DeleteGroupsResult(dict.fromkeys(request.groups_names, error.code)))

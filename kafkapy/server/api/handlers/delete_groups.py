"""DeleteGroups (key 42), versions 0-2 (KIP-229).

Behaviour: the states of a share group's partitions are deleted first, by the share coordinators.
"""

from __future__ import annotations

from functools import partial

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.coordinator.groups.messages import DeleteGroups, DeleteGroupsResult
from kafkapy.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkapy.server.api.handler_support import gather
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.coordinators.share_offsets import ShareOffsets
from kafkapy.server.requests.outcomes import Later, Outcome
from kafkapy.server.requests.turns import ROW_UNITS, ROWS_AT_ONCE, Work, pieces


def handle(
    groups: GroupService,
    offsets: ShareOffsets,
    context: RequestContext,
    request: DeleteGroupsRequest,
) -> Work[Outcome[DeleteGroupsResponse]] | Later[DeleteGroupsResponse]:
    """Delete empty groups and their offsets."""
    names = dict.fromkeys(request.groups_names)
    shares = [name for name in names if groups.coordinator.is_share_group(name)]
    if shares:
        return _with_shares(groups, offsets, list(names), shares)
    return _delete(groups, request)


async def _with_shares(
    groups: GroupService, offsets: ShareOffsets, names: list[str], shares: list[str]
) -> DeleteGroupsResponse:
    errors: dict[str, ErrorCode] = {}
    for name in shares:
        try:
            failed = [error for error in (await offsets.delete(name, None)).values() if error]
            if failed:
                errors[name] = failed[0]
        except ApiError as refusal:
            errors[name] = refusal.code
    left = [name for name in names if name not in errors]
    result = groups.answer(
        groups.coordinator.delete_groups, DeleteGroups(left), lambda result: result
    )
    return _response([DeleteGroupsResult({**errors, **result.errors})])


def _delete(
    groups: GroupService, request: DeleteGroupsRequest
) -> Work[Outcome[DeleteGroupsResponse]]:
    starts = [
        partial(groups.ask, groups.coordinator.delete_groups, DeleteGroups(few))
        for few in pieces(list(dict.fromkeys(request.groups_names)))
    ]
    return (yield from gather(starts, _response, ROW_UNITS * ROWS_AT_ONCE))


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

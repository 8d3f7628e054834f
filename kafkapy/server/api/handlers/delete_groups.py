"""DeleteGroups (key 42), versions 0-2 (KIP-229).

Behaviour: the states of a share group's partitions are deleted first, by the share coordinators.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
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
from kafkapy.server.coordinators.share_setup import Spawn
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import (
    CHECK_UNITS,
    ROW_UNITS,
    ROWS_AT_ONCE,
    Work,
    chunks,
    hash_units,
)


def handle(
    groups: GroupService,
    offsets: ShareOffsets,
    spawn: Spawn,
    context: RequestContext,
    request: DeleteGroupsRequest,
) -> Work[Outcome[DeleteGroupsResponse]]:
    """Delete empty groups and their offsets."""
    share_groups: list[str] = []
    other_groups: list[str] = []
    for name in dict.fromkeys(request.groups_names):
        is_share_group = groups.coordinator.is_share_group(name)
        (share_groups if is_share_group else other_groups).append(name)
        yield CHECK_UNITS + hash_units(name)
    starts: list[Callable[[Callable[[DeleteGroupsResult], None]], None]] = [
        partial(groups.run_internal, groups.coordinator.delete_groups, DeleteGroups(few))
        for few in chunks(other_groups)
    ]
    starts += [
        partial(_spawn_deletion, spawn, partial(_delete_share_group, groups, offsets, n))
        for n in share_groups
    ]
    return (yield from gather(starts, _response, ROW_UNITS * ROWS_AT_ONCE))


def _spawn_deletion(
    spawn: Spawn,
    delete: Callable[[Callable[[DeleteGroupsResult], None]], Coroutine[None, None, None]],
    on_result: Callable[[DeleteGroupsResult], None],
) -> None:
    spawn(delete(on_result))


async def _delete_share_group(
    groups: GroupService,
    offsets: ShareOffsets,
    name: str,
    on_result: Callable[[DeleteGroupsResult], None],
) -> None:
    """Delete a share group, after the states of its share partitions."""
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    try:
        errors = (await offsets.delete(name, None)).values()
        code = next((error for error in errors if error), ErrorCode.NONE)
    except ApiError as refusal:
        code = refusal.code
    finally:
        if code is ErrorCode.NONE:
            groups.run_internal(groups.coordinator.delete_groups, DeleteGroups([name]), on_result)
        else:
            on_result(DeleteGroupsResult({name: code}))


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

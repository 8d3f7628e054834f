"""CreateAcls (key 30), versions 0-3: adds access control entries (KIP-140).

Behaviour: entries take effect on this broker before the response, on others after the notification.
Version notes: v1 has prefixed patterns (KIP-290).
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kafkapy.server.admin.acl_admin import AclAdmin, Binding
from kafkapy.server.api.handler_support import acl_admin, acl_binding, limit_changes
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.outcomes import ResponseCoroutine
from kafkapy.server.requests.turns import CHECK_UNITS, SliceScheduler, Work, chunks


def handle(
    admin: AclAdmin | None,
    slices: SliceScheduler,
    context: RequestContext,
    request: CreateAclsRequest,
) -> ResponseCoroutine[Work[CreateAclsResponse]]:
    """Add each entry."""
    admin = acl_admin(admin)
    limit_changes(len(request.creations))

    async def create() -> Work[CreateAclsResponse]:
        pace = slices.pace()
        bindings: list[Binding] = []
        for few in chunks(request.creations):
            bindings += [acl_binding(row) for row in few]
            await pace.charge(CHECK_UNITS * len(few))
        return _response(await admin.create(bindings, pace))

    return create()


def _response(errors: list[ApiError | None]) -> Work[CreateAclsResponse]:
    response = CreateAclsResponse()
    for few in chunks(errors):
        response.results += [_row(error) for error in few]
        yield len(few)
    return response


def _row(error: ApiError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult()
    return AclCreationResult(error_code=error.code, error_message=error.message)


def refuse(request: CreateAclsRequest, error: ApiError, version: int) -> CreateAclsResponse:
    """The same error for every entry."""
    return CreateAclsResponse(results=[_row(error) for _ in request.creations])

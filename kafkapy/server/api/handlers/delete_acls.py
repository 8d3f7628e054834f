"""DeleteAcls (key 31), versions 0-3: removes the access control entries that match filters
(KIP-140).

Behaviour: an entry that several filters match is returned for the first of them only. Version
notes: v1 has prefixed patterns (KIP-290); filters of v0 match literal names only.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kafkapy.server.admin.acl_admin import AclAdmin, DeletedBinding
from kafkapy.server.api.handler_support import acl_admin, acl_filter
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.outcomes import ResponseCoroutine
from kafkapy.server.requests.turns import SliceScheduler


def handle(
    admin: AclAdmin | None,
    slices: SliceScheduler,
    context: RequestContext,
    request: DeleteAclsRequest,
) -> ResponseCoroutine[DeleteAclsResponse]:
    """Remove the entries that each filter matches."""
    admin = acl_admin(admin)
    filters = [acl_filter(row) for row in request.filters]

    async def delete() -> DeleteAclsResponse:
        results = [
            DeleteAclsFilterResult(matching_acls=[_row(each) for each in found])
            for found in await admin.delete(filters, slices.pace())
        ]
        return DeleteAclsResponse(filter_results=results)

    return delete()


def _row(deleted: DeletedBinding) -> DeleteAclsMatchingAcl:
    (resource, entry), error = deleted
    row = DeleteAclsMatchingAcl(
        resource_type=resource.kind,
        resource_name=resource.name or "",
        pattern_type=resource.pattern,
        principal=entry.principal or "",
        host=entry.host or "",
        operation=entry.operation,
        permission_type=entry.permission,
    )
    if error is not None:
        row.error_code, row.error_message = error.code, error.message
    return row


def refuse(request: DeleteAclsRequest, error: ApiError, version: int) -> DeleteAclsResponse:
    """The same error for every filter."""
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=error.code, error_message=error.message)
            for _ in request.filters
        ]
    )

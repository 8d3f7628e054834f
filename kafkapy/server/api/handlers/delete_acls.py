"""DeleteAcls (key 31), versions 0-3: removes the access control entries that match filters
(KIP-140).

Behaviour: an entry that several filters match is a row of the first.
Version notes: v1 prefixes (KIP-290); before, a filter is of literal names.
"""

from __future__ import annotations

from typing import Any

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kafkapy.server.admin.acl_admin import Deleted
from kafkapy.server.api.handler_support import acl_admin, acl_filter, run_async
from kafkapy.server.api.request_context import RequestContext


def handle(context: RequestContext, request: DeleteAclsRequest) -> Any:
    """Remove what each filter matches."""
    admin = acl_admin(context)
    filters = [acl_filter(row) for row in request.filters]

    async def deleted() -> DeleteAclsResponse:
        results = [
            DeleteAclsFilterResult(matching_acls=[_row(each) for each in found])
            for found in await admin.delete(filters, context.broker.turns.pace())
        ]
        return DeleteAclsResponse(filter_results=results)

    return run_async(context, deleted(), lambda error: refuse(request, error, context.version))


def _row(deleted: Deleted) -> DeleteAclsMatchingAcl:
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

"""DescribeAcls (key 29), versions 0-3: the access control entries that match a filter (KIP-140).

Version notes: v1 has prefixed patterns (KIP-290); filters of v0 match literal names only.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kafkapy.server.admin.acl_admin import AclAdmin
from kafkapy.server.api.handler_support import acl_admin, acl_filter
from kafkapy.server.api.request_context import RequestContext


def handle(
    admin: AclAdmin | None, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    """List the entries in force on this broker."""
    admin = acl_admin(admin, "No Authorizer is configured on the broker")
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type=resource.kind,
                resource_name=resource.name or "",
                pattern_type=resource.pattern,
                acls=[
                    AclDescription(
                        principal=entry.principal or "",
                        host=entry.host or "",
                        operation=entry.operation,
                        permission_type=entry.permission,
                    )
                    for entry in entries
                ],
            )
            for resource, entries in admin.describe(acl_filter(request)).items()
        ]
    )


def refuse(request: DescribeAclsRequest, error: ApiError, version: int) -> DescribeAclsResponse:
    """One error for the whole request."""
    return DescribeAclsResponse(error_code=error.code, error_message=error.message)

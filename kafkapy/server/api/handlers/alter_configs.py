"""AlterConfigs (key 33), versions 0-2: replaces all dynamic configs of a resource."""

from __future__ import annotations

from collections import Counter

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kafkapy.server.admin.config_admin import ConfigAdmin
from kafkapy.server.api.handler_support import (
    config_resource,
    distinct,
    limit_changes,
    refuse_repeated,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.server.requests.turns import CHANGE_UNITS, SliceScheduler


async def handle(
    admin: ConfigAdmin,
    changes: ConfigChangeListener,
    slices: SliceScheduler,
    context: RequestContext,
    request: AlterConfigsRequest,
) -> AlterConfigsResponse:
    """Replace the configs of each resource."""
    limit_changes(len(request.resources))
    rows = []
    pace = slices.pace()
    resources = Counter(map(config_resource, request.resources))
    for resource in distinct(request.resources, config_resource):
        row = _row(resource)
        rows.append(row)
        try:
            refuse_repeated(config_resource(resource), resources)
            configs = {c.name: c.value for c in resource.configs}
            if len(configs) < len(resource.configs):
                message = "Error due to duplicate config keys"
                raise ApiError(ErrorCode.INVALID_REQUEST, message)
            await admin.replace(
                resource.resource_type,
                resource.resource_name,
                configs,
                request.validate_only,
            )
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.message
        await pace.charge(CHANGE_UNITS + len(resource.configs))
    # A change must be visible to the next request.
    await changes.process()
    return AlterConfigsResponse(responses=rows)


def _row(resource: AlterConfigsResource) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )


def refuse(request: AlterConfigsRequest, error: ApiError, version: int) -> AlterConfigsResponse:
    """The same error for every resource."""
    rows = [_row(resource) for resource in request.resources]
    for row in rows:
        row.error_code, row.error_message = error.code, error.message
    return AlterConfigsResponse(responses=rows)

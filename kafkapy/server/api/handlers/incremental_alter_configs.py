"""IncrementalAlterConfigs (key 44), versions 0-1: set, delete, append, subtract (KIP-339)."""

from __future__ import annotations

from collections import Counter

from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkapy.server.admin.broker_loggers import BrokerLoggers
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
    loggers: BrokerLoggers,
    changes: ConfigChangeListener,
    slices: SliceScheduler,
    context: RequestContext,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse:
    """Change some configs of each resource."""
    limit_changes(len(request.resources))
    rows = []
    pace = slices.pace()
    resources = Counter(map(config_resource, request.resources))
    for resource in distinct(request.resources, config_resource):
        row = _row(resource)
        rows.append(row)
        try:
            refuse_repeated(config_resource(resource), resources)
            kind, name = resource.resource_type, resource.resource_name
            ops = [(c.name, c.config_operation, c.value) for c in resource.configs]
            if kind == ResourceType.BROKER_LOGGER:
                loggers.change(name, ops, request.validate_only)
            else:
                await admin.change(kind, name, ops, request.validate_only)
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.message
        await pace.charge(CHANGE_UNITS + len(resource.configs))
    # A change must be visible to the next request.
    await changes.process()
    return IncrementalAlterConfigsResponse(responses=rows)


def _row(resource: AlterConfigsResource) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )


def refuse(
    request: IncrementalAlterConfigsRequest, error: ApiError, version: int
) -> IncrementalAlterConfigsResponse:
    """The same error for every resource."""
    rows = [_row(resource) for resource in request.resources]
    for row in rows:
        row.error_code, row.error_message = error.code, error.message
    return IncrementalAlterConfigsResponse(responses=rows)

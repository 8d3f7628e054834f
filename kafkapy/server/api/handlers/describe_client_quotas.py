"""DescribeClientQuotas (key 48), versions 0-1: the quotas of the entities that pass a filter
(KIP-546).

Version notes: v1 is flexible.
"""

from __future__ import annotations

from typing import Any

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kafkapy.server.admin.quota_admin import Component
from kafkapy.server.api.handler_support import run_async
from kafkapy.server.api.request_context import RequestContext


def handle(context: RequestContext, request: DescribeClientQuotasRequest) -> Any:
    """List the stored quotas."""
    components = [
        Component(row.entity_type, row.match_type, row.match) for row in request.components
    ]

    async def described() -> DescribeClientQuotasResponse:
        found = await context.broker.quota_admin.describe(
            components, request.strict, context.broker.turns.pace()
        )
        entries = [
            EntryData(
                entity=[EntityData(entity_type=k, entity_name=v) for k, v in entity.items()],
                values=[ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in found
        ]
        return DescribeClientQuotasResponse(error_message="", entries=entries)

    return run_async(context, described(), lambda error: refuse(request, error, context.version))


def refuse(
    request: DescribeClientQuotasRequest, error: ApiError, version: int
) -> DescribeClientQuotasResponse:
    """One error for all."""
    return DescribeClientQuotasResponse(
        error_code=error.code, error_message=error.message, entries=None
    )

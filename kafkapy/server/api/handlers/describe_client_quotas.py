"""DescribeClientQuotas (key 48), versions 0-1: the quotas of the entities that match a filter
(KIP-546).

Version notes: v1 is flexible.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kafkapy.server.admin.quota_admin import Component, QuotaAdmin
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.outcomes import ResponseCoroutine
from kafkapy.server.requests.turns import SliceScheduler


def handle(
    admin: QuotaAdmin,
    slices: SliceScheduler,
    context: RequestContext,
    request: DescribeClientQuotasRequest,
) -> ResponseCoroutine[DescribeClientQuotasResponse]:
    """List the stored quotas."""
    components = [
        Component(row.entity_type, row.match_type, row.match) for row in request.components
    ]

    async def describe() -> DescribeClientQuotasResponse:
        found = await admin.describe(components, request.strict, slices.pace())
        entries = [
            EntryData(
                entity=[EntityData(entity_type=k, entity_name=v) for k, v in entity.items()],
                values=[ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in found
        ]
        return DescribeClientQuotasResponse(error_message="", entries=entries)

    return describe()


def refuse(
    request: DescribeClientQuotasRequest, error: ApiError, version: int
) -> DescribeClientQuotasResponse:
    """One error for the whole request."""
    return DescribeClientQuotasResponse(
        error_code=error.code, error_message=error.message, entries=None
    )

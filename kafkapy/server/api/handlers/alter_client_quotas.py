"""AlterClientQuotas (key 49), versions 0-1: sets and removes quotas (KIP-546).

Behaviour: any broker serves it. Each entity is a separate change. An entity that is named twice has
one row in the response. Version notes: v1 is flexible.
"""

from __future__ import annotations

from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityDataResponse,
    EntryData,
    EntryDataResponse,
)
from kafkapy.server.admin.quota_admin import CLIENT_ID, IP, USER, Entity, QuotaAdmin, QuotaOp
from kafkapy.server.api.handler_support import limit_changes
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.server.requests.turns import (
    CHANGE_UNITS,
    SliceScheduler,
    Work,
    chunks,
    run_now,
    run_paced,
)

# The order of an entity's parts in Kafka's responses.
_ORDER: Final = (CLIENT_ID, USER, IP)
_Key = tuple[tuple[str, str | None], ...]


async def handle(
    admin: QuotaAdmin,
    changes: ConfigChangeListener,
    slices: SliceScheduler,
    context: RequestContext,
    request: AlterClientQuotasRequest,
) -> AlterClientQuotasResponse:
    """Change the quotas, entity by entity."""
    limit_changes(len(request.entries))
    rows: dict[_Key, EntryDataResponse] = {}
    pace = slices.pace()
    for entry in request.entries:
        await pace.charge(CHANGE_UNITS)
        entity = await run_paced(_entity(entry), pace)
        try:
            await admin.alter(entity, _ops(entry), request.validate_only)
        except ApiError as error:
            row = await run_paced(_row(entity, error), pace)
        else:
            row = await run_paced(_row(entity, None), pace)
        rows[tuple(entity.items())] = row
    if not request.validate_only:
        # After the response the quota must be in force, at least at this broker.
        await changes.process()
    return AlterClientQuotasResponse(entries=list(rows.values()))


def _ops(entry: EntryData) -> list[QuotaOp]:
    return [QuotaOp(op.key, None if op.remove else op.value) for op in entry.ops]


def _entity(entry: EntryData) -> Work[dict[str, str | None]]:
    """The parts of an entity, in the order of Kafka's responses. An entity in a request may have
    any number of parts.
    """
    given: dict[str, str | None] = {}
    for few in chunks(entry.entity):
        given.update({part.entity_type: part.entity_name for part in few})
        yield len(few)
    return {kind: given.pop(kind) for kind in _ORDER if kind in given} | given


def _row(entity: Entity, error: ApiError | None) -> Work[EntryDataResponse]:
    row = EntryDataResponse(entity=[])
    for few in chunks(list(entity.items())):
        row.entity += [EntityDataResponse(entity_type=k, entity_name=v) for k, v in few]
        yield len(few)
    if error is not None:
        row.error_code = error.code
        if error.code is not ErrorCode.UNKNOWN_SERVER_ERROR:
            row.error_message = error.message
    return row


def refuse(
    request: AlterClientQuotasRequest, error: ApiError, version: int
) -> AlterClientQuotasResponse:
    """The same error for every entity."""
    return AlterClientQuotasResponse(
        entries=[run_now(_row(run_now(_entity(entry)), error)) for entry in request.entries]
    )

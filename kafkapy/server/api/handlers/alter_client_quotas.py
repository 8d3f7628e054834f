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
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.server.requests.turns import CHANGE_UNITS, Turns

# How Kafka's answers have the parts of an entity.
_ORDER: Final = (CLIENT_ID, USER, IP)
_Key = tuple[tuple[str, str | None], ...]


async def handle(
    admin: QuotaAdmin,
    changes: ConfigChangeListener,
    turns: Turns,
    context: RequestContext,
    request: AlterClientQuotasRequest,
) -> AlterClientQuotasResponse:
    """Change the quotas, entity by entity."""
    rows: dict[_Key, EntryDataResponse] = {}
    pace = turns.pace()
    for entry in request.entries:
        await pace.spend(CHANGE_UNITS)
        rows[_key(entry)] = await _alter(admin, entry, request.validate_only)
    if not request.validate_only:
        # After the response the quota must be in force, at least at this broker.
        await changes.process()
    return AlterClientQuotasResponse(entries=list(rows.values()))


async def _alter(admin: QuotaAdmin, entry: EntryData, validate_only: bool) -> EntryDataResponse:
    ops = [QuotaOp(op.key, None if op.remove else op.value) for op in entry.ops]
    try:
        await admin.alter(_entity(entry), ops, validate_only)
    except ApiError as error:
        return _row(entry, error)
    return _row(entry, None)


def _entity(entry: EntryData) -> Entity:
    return {part.entity_type: part.entity_name for part in entry.entity}


def _key(entry: EntryData) -> _Key:
    def place(part: tuple[str, str | None]) -> int:
        return _ORDER.index(part[0]) if part[0] in _ORDER else len(_ORDER)

    return tuple(sorted(_entity(entry).items(), key=place))


def _row(entry: EntryData, error: ApiError | None) -> EntryDataResponse:
    row = EntryDataResponse(
        entity=[EntityDataResponse(entity_type=k, entity_name=v) for k, v in _key(entry)]
    )
    if error is not None:
        row.error_code = error.code
        if error.code is not ErrorCode.UNKNOWN_SERVER_ERROR:
            row.error_message = error.message
    return row


def refuse(
    request: AlterClientQuotasRequest, error: ApiError, version: int
) -> AlterClientQuotasResponse:
    """The same error for every entity."""
    return AlterClientQuotasResponse(entries=[_row(entry, error) for entry in request.entries])

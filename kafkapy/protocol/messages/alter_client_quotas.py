"""AlterClientQuotas (key 49): sets or removes quotas (KIP-546)."""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import (
    BOOL,
    FLOAT64,
    INT16,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    field,
)


class EntityData(Struct):
    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable=True)


class OpData(Struct):
    key: str = field(STRING)
    value: float = field(FLOAT64)
    remove: bool = field(BOOL)


class EntryData(Struct):
    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(Message, api=ApiKey.ALTER_CLIENT_QUOTAS):
    entries: list[EntryData] = array(EntryData)
    validate_only: bool = field(BOOL)


class EntityDataResponse(Struct):
    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable=True)


class EntryDataResponse(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    entity: list[EntityDataResponse] = array(EntityDataResponse)


class AlterClientQuotasResponse(Message, api=ApiKey.ALTER_CLIENT_QUOTAS):
    throttle_time_ms: int = field(INT32)
    entries: list[EntryDataResponse] = array(EntryDataResponse)

"""DeleteGroups (key 42): deletes empty groups (KIP-229)."""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, STRING, Message, Struct, array, field


class DeleteGroupsRequest(Message, api=ApiKey.DELETE_GROUPS):
    groups_names: list[str] = array(STRING)


class DeletableGroupResult(Struct):
    group_id: str = field(STRING)
    error_code: int = field(INT16)


class DeleteGroupsResponse(Message, api=ApiKey.DELETE_GROUPS):
    throttle_time_ms: int = field(INT32)
    results: list[DeletableGroupResult] = array(DeletableGroupResult)

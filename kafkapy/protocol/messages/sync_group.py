"""SyncGroup (key 14): the leader sends the assignment, and members get theirs.

v3 static members (KIP-345); v5 protocol type and name (KIP-559).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BYTES, INT16, INT32, STRING, Message, Struct, array, field


class SyncGroupRequestAssignment(Struct):
    member_id: str = field(STRING)
    assignment: bytes = field(BYTES)


class SyncGroupRequest(Message, api=ApiKey.SYNC_GROUP):
    group_id: str = field(STRING)
    generation_id: int = field(INT32)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, "3+", nullable=True)
    protocol_type: str | None = field(STRING, "5+", nullable=True)
    protocol_name: str | None = field(STRING, "5+", nullable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


class SyncGroupResponse(Message, api=ApiKey.SYNC_GROUP):
    throttle_time_ms: int = field(INT32, "1+")
    error_code: int = field(INT16)
    protocol_type: str | None = field(STRING, "5+", nullable=True)
    protocol_name: str | None = field(STRING, "5+", nullable=True)
    assignment: bytes = field(BYTES)

"""Heartbeat (key 12): keeps a member in its group.

v3 static members (KIP-345).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, STRING, Message, field


class HeartbeatRequest(Message, api=ApiKey.HEARTBEAT):
    group_id: str = field(STRING)
    generation_id: int = field(INT32)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, "3+", nullable=True)


class HeartbeatResponse(Message, api=ApiKey.HEARTBEAT):
    throttle_time_ms: int = field(INT32, "1+")
    error_code: int = field(INT16)

"""JoinGroup (key 11): a member joins a group and waits for the generation to form.

v1 rebalance timeout (KIP-62); v4 first join without id is refused with one (KIP-394); v5 static
members (KIP-345); v7 protocol type (KIP-559); v8 reason (KIP-800); v9 skip assignment (KIP-814).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BOOL, BYTES, INT16, INT32, STRING, Message, Struct, array, field


class JoinGroupRequestProtocol(Struct):
    name: str = field(STRING)
    metadata: bytes = field(BYTES)


class JoinGroupRequest(Message, api=ApiKey.JOIN_GROUP):
    group_id: str = field(STRING)
    session_timeout_ms: int = field(INT32)
    rebalance_timeout_ms: int = field(INT32, "1+", default=-1)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, "5+", nullable=True)
    protocol_type: str = field(STRING)
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = field(STRING, "8+", nullable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, "5+", nullable=True)
    metadata: bytes = field(BYTES)


class JoinGroupResponse(Message, api=ApiKey.JOIN_GROUP):
    throttle_time_ms: int = field(INT32, "2+")
    error_code: int = field(INT16)
    generation_id: int = field(INT32, default=-1)
    protocol_type: str | None = field(STRING, "7+", nullable=True)
    protocol_name: str | None = field(STRING, nullable="7+")
    leader: str = field(STRING)
    skip_assignment: bool = field(BOOL, "9+")
    member_id: str = field(STRING)
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)

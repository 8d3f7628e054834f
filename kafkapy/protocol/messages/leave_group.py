"""LeaveGroup (key 13): members leave a group.

v3 several members, static ones by instance id (KIP-345); v5 reason (KIP-800).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, STRING, Message, Struct, array, field


class MemberIdentity(Struct):
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, nullable=True)
    reason: str | None = field(STRING, "5+", nullable=True)


class LeaveGroupRequest(Message, api=ApiKey.LEAVE_GROUP):
    group_id: str = field(STRING)
    member_id: str = field(STRING, "0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


class MemberResponse(Struct):
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, nullable=True)
    error_code: int = field(INT16)


class LeaveGroupResponse(Message, api=ApiKey.LEAVE_GROUP):
    throttle_time_ms: int = field(INT32, "1+")
    error_code: int = field(INT16)
    members: list[MemberResponse] = array(MemberResponse, "3+")

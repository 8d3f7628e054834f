"""DescribeGroups (key 15): state and members of groups.

v3 authorized operations (KIP-430); v4 static members (KIP-345).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BOOL, BYTES, INT16, INT32, STRING, Message, Struct, array, field


class DescribeGroupsRequest(Message, api=ApiKey.DESCRIBE_GROUPS):
    groups: list[str] = array(STRING)
    include_authorized_operations: bool = field(BOOL, "3+")


class DescribedGroupMember(Struct):
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, "4+", nullable=True)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    member_metadata: bytes = field(BYTES)
    member_assignment: bytes = field(BYTES)


class DescribedGroup(Struct):
    error_code: int = field(INT16)
    group_id: str = field(STRING)
    group_state: str = field(STRING)
    protocol_type: str = field(STRING)
    protocol_data: str = field(STRING)
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = field(INT32, "3+", default=-2147483648)


class DescribeGroupsResponse(Message, api=ApiKey.DESCRIBE_GROUPS):
    throttle_time_ms: int = field(INT32, "1+")
    groups: list[DescribedGroup] = array(DescribedGroup)

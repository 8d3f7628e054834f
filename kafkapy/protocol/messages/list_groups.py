"""ListGroups (key 16): the groups that a broker coordinates.

v4 by state (KIP-518); v5 by type (KIP-848).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, STRING, Message, Struct, array, field


class ListGroupsRequest(Message, api=ApiKey.LIST_GROUPS):
    states_filter: list[str] = array(STRING, "4+")
    types_filter: list[str] = array(STRING, "5+")


class ListedGroup(Struct):
    group_id: str = field(STRING)
    protocol_type: str = field(STRING)
    group_state: str = field(STRING, "4+")
    group_type: str = field(STRING, "5+")


class ListGroupsResponse(Message, api=ApiKey.LIST_GROUPS):
    throttle_time_ms: int = field(INT32, "1+")
    error_code: int = field(INT16)
    groups: list[ListedGroup] = array(ListedGroup)

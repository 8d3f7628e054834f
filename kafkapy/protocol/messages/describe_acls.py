"""DescribeAcls (key 29): the ACLs that match a filter (KIP-140).

v1 pattern types (KIP-290).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT8, INT16, INT32, STRING, Message, Struct, array, field


class DescribeAclsRequest(Message, api=ApiKey.DESCRIBE_ACLS):
    resource_type_filter: int = field(INT8)
    resource_name_filter: str | None = field(STRING, nullable=True)
    pattern_type_filter: int = field(INT8, "1+", default=3)
    principal_filter: str | None = field(STRING, nullable=True)
    host_filter: str | None = field(STRING, nullable=True)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


class AclDescription(Struct):
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


class DescribeAclsResource(Struct):
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    pattern_type: int = field(INT8, "1+", default=3)
    acls: list[AclDescription] = array(AclDescription)


class DescribeAclsResponse(Message, api=ApiKey.DESCRIBE_ACLS):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)

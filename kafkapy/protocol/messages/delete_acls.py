"""DeleteAcls (key 31): removes the ACLs that match filters (KIP-140).

v1 pattern types (KIP-290).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT8, INT16, INT32, STRING, Message, Struct, array, field


class DeleteAclsFilter(Struct):
    resource_type_filter: int = field(INT8)
    resource_name_filter: str | None = field(STRING, nullable=True)
    pattern_type_filter: int = field(INT8, "1+", default=3)
    principal_filter: str | None = field(STRING, nullable=True)
    host_filter: str | None = field(STRING, nullable=True)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


class DeleteAclsRequest(Message, api=ApiKey.DELETE_ACLS):
    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


class DeleteAclsMatchingAcl(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    pattern_type: int = field(INT8, "1+", default=3)
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


class DeleteAclsFilterResult(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)


class DeleteAclsResponse(Message, api=ApiKey.DELETE_ACLS):
    throttle_time_ms: int = field(INT32)
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)

"""CreateAcls (key 30): adds ACLs (KIP-140).

v1 pattern types (KIP-290).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT8, INT16, INT32, STRING, Message, Struct, array, field


class AclCreation(Struct):
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    resource_pattern_type: int = field(INT8, "1+", default=3)
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


class CreateAclsRequest(Message, api=ApiKey.CREATE_ACLS):
    creations: list[AclCreation] = array(AclCreation)


class AclCreationResult(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)


class CreateAclsResponse(Message, api=ApiKey.CREATE_ACLS):
    throttle_time_ms: int = field(INT32)
    results: list[AclCreationResult] = array(AclCreationResult)

"""AlterConfigs (key 33): replaces all dynamic configs of a resource (KIP-133)."""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BOOL, INT8, INT16, INT32, STRING, Message, Struct, array, field


class AlterableConfig(Struct):
    name: str = field(STRING)
    value: str | None = field(STRING, nullable=True)


class AlterConfigsResource(Struct):
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[AlterableConfig] = array(AlterableConfig)


class AlterConfigsRequest(Message, api=ApiKey.ALTER_CONFIGS):
    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = field(BOOL)


class AlterConfigsResourceResponse(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)


class AlterConfigsResponse(Message, api=ApiKey.ALTER_CONFIGS):
    throttle_time_ms: int = field(INT32)
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)

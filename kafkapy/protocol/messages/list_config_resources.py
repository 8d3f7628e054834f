"""ListConfigResources (key 74): the names of resources that may have configs.

v0 is KIP-714's ListClientMetricsResources, v1 has the types of resources (KIP-1142).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT8, INT16, INT32, STRING, Message, Struct, array, field

_CLIENT_METRICS = 16


class ListConfigResourcesRequest(Message, api=ApiKey.LIST_CONFIG_RESOURCES):
    resource_types: list[int] = array(INT8, "1+")


class ConfigResource(Struct):
    resource_name: str = field(STRING)
    resource_type: int = field(INT8, "1+", default=_CLIENT_METRICS)


class ListConfigResourcesResponse(Message, api=ApiKey.LIST_CONFIG_RESOURCES):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    config_resources: list[ConfigResource] = array(ConfigResource)

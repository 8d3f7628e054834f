"""ListClientMetricsResources (key 74): the subscriptions to clients' metrics (KIP-714)."""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, STRING, Message, Struct, array, field


class ListClientMetricsResourcesRequest(Message, api=ApiKey.LIST_CLIENT_METRICS_RESOURCES):
    pass


class ClientMetricsResource(Struct):
    name: str = field(STRING)


class ListClientMetricsResourcesResponse(Message, api=ApiKey.LIST_CLIENT_METRICS_RESOURCES):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    client_metrics_resources: list[ClientMetricsResource] = array(ClientMetricsResource)

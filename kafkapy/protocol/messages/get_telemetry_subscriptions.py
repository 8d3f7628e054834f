"""GetTelemetrySubscriptions (key 71): the metrics that a client must push, and when (KIP-714)."""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BOOL, INT8, INT16, INT32, STRING, UUID, Message, array, field


class GetTelemetrySubscriptionsRequest(Message, api=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS):
    client_instance_id: Uuid = field(UUID)


class GetTelemetrySubscriptionsResponse(Message, api=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    client_instance_id: Uuid = field(UUID)
    subscription_id: int = field(INT32)
    accepted_compression_types: list[int] = array(INT8)
    push_interval_ms: int = field(INT32)
    telemetry_max_bytes: int = field(INT32)
    delta_temporality: bool = field(BOOL)
    requested_metrics: list[str] = array(STRING)

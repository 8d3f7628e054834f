"""PushTelemetry (key 72): a client's metrics, as OpenTelemetry's MetricsData (KIP-714)."""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.primitives import Buffer
from kafkapy.protocol.schema import BOOL, BYTES, INT8, INT16, INT32, UUID, Message, field


class PushTelemetryRequest(Message, api=ApiKey.PUSH_TELEMETRY):
    client_instance_id: Uuid = field(UUID)
    subscription_id: int = field(INT32)
    terminating: bool = field(BOOL)
    compression_type: int = field(INT8)
    metrics: Buffer = field(BYTES)


class PushTelemetryResponse(Message, api=ApiKey.PUSH_TELEMETRY):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)

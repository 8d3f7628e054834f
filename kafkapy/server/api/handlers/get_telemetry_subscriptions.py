"""GetTelemetrySubscriptions (key 71), version 0: the metrics and interval of pushes (KIP-714)."""

from __future__ import annotations

from kafkapy.common.ports import Clock
from kafkapy.metadata.telemetry import COMPRESSION_TYPES, ClientTelemetry
from kafkapy.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kafkapy.server.api.request_context import RequestContext

# Clients use the first type that they support.
_ACCEPTED_COMPRESSION_TYPES = sorted(COMPRESSION_TYPES, reverse=True)[:-1]


def handle(
    telemetry: ClientTelemetry,
    clock: Clock,
    context: RequestContext,
    request: GetTelemetrySubscriptionsRequest,
) -> GetTelemetrySubscriptionsResponse:
    """Return the client's subscription, with a new instance id if the client has none."""
    instance_id, instance = telemetry.get(
        clock.monotonic_ms(), request.client_instance_id, context.client_information()
    )
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=_ACCEPTED_COMPRESSION_TYPES,
        push_interval_ms=instance.requested_metrics.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=list(instance.requested_metrics.metrics),
    )

"""PushTelemetry (key 72), version 0: accepts the metrics of a client (KIP-714).

Behaviour: another thread decodes the metrics, because a megabyte takes some time.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kafkapy.common.ports import Clock
from kafkapy.metadata.telemetry import Push
from kafkapy.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from kafkapy.record.codec import Codec
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import Work, run_in_thread

if TYPE_CHECKING:  # a broker without metrics does not import the library for them
    from kafkapy.server.observability.client_metrics import ClientMetrics


def handle(
    metrics: ClientMetrics,
    clock: Clock,
    context: RequestContext,
    request: PushTelemetryRequest,
) -> Work[Outcome[PushTelemetryResponse]]:
    """Check a push, and store its data points."""
    data = bytes(request.metrics)
    push = Push(request.subscription_id, request.terminating, request.compression_type, len(data))
    instance = metrics.telemetry.push(
        clock.monotonic_ms(), request.client_instance_id, context.client_information(), push
    )
    if data:
        codec = Codec(request.compression_type)
        pushed = yield from run_in_thread(partial(metrics.read, instance.client, codec, data))
        metrics.store(request.client_instance_id, pushed)
    return PushTelemetryResponse()

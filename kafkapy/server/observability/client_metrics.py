"""The metrics that clients push (KIP-714), and their place among those of the broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.metadata.client_series import ClientSeries
from kafkapy.metadata.otlp import LABEL_CHARS_MAX, PushedPoints, label_text, read_points
from kafkapy.record.codec import Codec
from kafkapy.record.compression import decompress
from kafkapy.server.counts.metric_table import counter, gauge

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.common.uuid import Uuid
    from kafkapy.metadata.client_metrics import ClientInformation
    from kafkapy.metadata.telemetry import ClientTelemetry

_PREFIX: Final = "kafka_server_client_metrics"
_INFO: Final = f"{_PREFIX}_instance_info"
"""The metric with one sample for each client that has series. It is written like the series,
because there may be thousands of clients."""


class ClientMetrics:
    """The series of the client instances in `telemetry`."""

    def __init__(self, telemetry: ClientTelemetry, clock: Clock) -> None:
        self.telemetry = telemetry
        self._clock = clock
        self._series = ClientSeries()
        self._pushes = 0
        self._failures = 0

    def read(self, client: ClientInformation, codec: Codec, data: bytes) -> PushedPoints:
        """Decompress and read a push; this may run in another thread.

        Raises:
            ApiError: INVALID_RECORD, after which clients stop pushing.
        """
        labels = {
            "client_id": client.client_id[:LABEL_CHARS_MAX],
            "client_instance_id": client.client_instance_id,
        }
        try:
            text = decompress(codec, data, self.telemetry.max_bytes)
            return read_points(text, labels)
        except (ApiError, ValueError) as error:
            self._failures += 1
            raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from None

    def store(self, instance_id: Uuid, pushed: PushedPoints) -> None:
        """Store the points of a push."""
        self.expire()
        self._pushes += 1
        self._series.dropped += pushed.dropped
        if instance_id in self.telemetry.instances:
            self._series.push(instance_id, pushed.points)

    def expire(self) -> None:
        """Remove the series of clients that have stopped pushing."""
        if self.telemetry.expire(self._clock.monotonic_ms()):
            self._series.retain_clients(self.telemetry.instances.keys())

    def collect(self) -> Iterator[Any]:
        """The broker's own metrics of clients and pushes."""
        telemetry = self.telemetry
        yield gauge(f"{_PREFIX}_instance_count", len(telemetry.instances))
        for name, value in (
            ("unknown_subscription_request_count", telemetry.unknown_subscriptions),
            ("throttle_count", telemetry.throttled),
            ("plugin_export_count", self._pushes),
            ("plugin_error_count", self._failures),
            ("dropped_points_count", self._series.dropped),
        ):
            yield counter(f"{_PREFIX}_{name}", value)

    def text(self) -> Iterator[str]:
        """The clients, then their series, in pieces."""
        self.expire()
        if not self._series.clients:
            return
        yield f"# HELP {_INFO} 1 for each client that pushes metrics\n# TYPE {_INFO} gauge\n"
        for instance_id in list(self._series.clients):
            instance = self.telemetry.instances.get(instance_id)
            if instance is not None:
                fields = {k: v[:LABEL_CHARS_MAX] for k, v in instance.client._asdict().items()}
                del fields["client_source_port"]
                yield f"{_INFO}{{{label_text(fields)}}} 1\n"
        yield from self._series.text()

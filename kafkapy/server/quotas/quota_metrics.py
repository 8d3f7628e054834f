"""Metric families of client quotas: the usage and the pauses of each entity with a quota.

Names and labels are those that the JMX exporter gives Kafka's beans (`kafka.server:type=Produce,
user=...,client-id=...`). Without quotas, there are only those of connections.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily

from kafkapy.common.ports import Clock
from kafkapy.metadata.client_quotas import QuotaKind
from kafkapy.server.counts.metric_table import gauge
from kafkapy.server.quotas.client_quotas import ClientQuotas

# The bean's type, and its name for the rate.
_BEANS: Final = {
    QuotaKind.PRODUCE: ("produce", "byte_rate"),
    QuotaKind.FETCH: ("fetch", "byte_rate"),
    QuotaKind.REQUEST: ("request", "request_time"),
    QuotaKind.CONTROLLER_MUTATION: ("controllermutation", "mutation_rate"),
}
_SOCKETS: Final = "kafka_server_socketservermetrics"


class QuotaMetrics:
    """Makes the families out of the recorded usage, when scraped."""

    def __init__(self, quotas: ClientQuotas, clock: Clock) -> None:
        self._quotas = quotas
        self._clock = clock

    def collect(self) -> Iterator[GaugeMetricFamily]:
        now_ms = self._clock.monotonic_ms()
        for kind, (bean, rate_name) in _BEANS.items():
            rates = gauge(f"kafka_server_{bean}_{rate_name}")
            pauses = gauge(f"kafka_server_{bean}_throttle_time")
            tokens = gauge("kafka_server_controllermutation_tokens")
            for tags, usage in self._quotas.by_kind[kind].items():
                rates.add_metric(tags, usage.rate.rate(now_ms))
                pauses.add_metric(tags, usage.pauses.average(now_ms))
                tokens.add_metric(tags, usage.bucket.tokens(usage.limit, now_ms))
            yield rates
            yield pauses
            if kind is QuotaKind.CONTROLLER_MUTATION:
                yield tokens
        exempt = gauge("kafka_server_request_exempt_request_time")
        if self._quotas.are_set:
            exempt.add_metric((), self._quotas.exempt.rate(now_ms))
        yield exempt
        yield from self._connections(now_ms)

    def _connections(self, now_ms: int) -> Iterator[GaugeMetricFamily]:
        """Rates of new connections, and their pauses."""
        creations = self._quotas.creations
        total = gauge(f"{_SOCKETS}_broker_connection_accept_rate")
        total.add_metric((), creations.broker.rate.rate(now_ms))
        accepted = gauge(f"{_SOCKETS}_connection_accept_rate")
        pauses = gauge(f"{_SOCKETS}_connection_accept_throttle_time")
        for name, usage in creations.listeners.items():
            accepted.add_metric((name, ""), usage.rate.rate(now_ms))
            pauses.add_metric((name,), usage.pauses.average(now_ms))
        for address, usage in self._quotas.connections.items():
            accepted.add_metric(("", address), usage.rate.rate(now_ms))
        ip_pauses = gauge(f"{_SOCKETS}_ip_connection_accept_throttle_time")
        for name, stat in creations.address_pauses():
            ip_pauses.add_metric((name,), stat.average(now_ms))
        yield from (total, accepted, pauses, ip_pauses)

"""Metric families of a broker's listeners: connections and logins (`socket-server-metrics`).

Names are those that the JMX exporter gives Kafka's beans. The label `networkprocessor` has no
counterpart. The label `mechanism` is not in Kafka: a SASL mechanism, or SSL for TLS without SASL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.core import GaugeMetricFamily

from kafkapy.server.counts.metric_table import counter, gauge
from kafkapy.server.observability.cluster_metrics import worst_and_mean

if TYPE_CHECKING:
    from kafkapy.server.network.connection_table import ConnectionTable

_PREFIX: Final = "kafka_server_socketservermetrics"
_LOGINS: Final = (
    ("successful_authentication", "succeeded"),
    ("failed_authentication", "failed"),
    ("successful_reauthentication", "renewed"),
    ("failed_reauthentication", "failed_to_renew"),
)


class ListenerMetrics:
    """Makes the families out of the table of connections, when scraped."""

    def __init__(self, names: Iterable[str], connections: ConnectionTable) -> None:
        """`names` are those of the current listeners."""
        self._names = tuple(names)
        self._connections = connections

    def collect(self) -> Iterator[Any]:
        logins = self._connections.logins
        count = self._connections.count_by_listener()
        yield self._gauge("connection_count", count)
        for name, attribute in _LOGINS:
            family = counter(f"{_PREFIX}_{name}")
            for login, number in getattr(logins, attribute).items():
                family.add_metric(login, number)
            yield family
        killed = logins.expired_killed
        yield self._gauge("expired_connections_killed_count", killed)
        total = killed.total()
        yield gauge("kafka_network_socketserver_expiredconnectionskilledcount", total)
        prefix = f"{_PREFIX}_reauthentication_latency"
        times = [
            ([listener], renewal_times) for listener, renewal_times in logins.renewal_times.items()
        ]
        yield from worst_and_mean(prefix, times)

    def _gauge(self, name: str, values: Counter[str]) -> GaugeMetricFamily:
        family = gauge(f"{_PREFIX}_{name}")
        for listener in self._names:
            family.add_metric([listener], values[listener])
        return family

"""Metric families of a broker's listeners: connections and logins (`socket-server-metrics`).

Names are those that the JMX exporter gives Kafka's beans; the label `networkprocessor` has no
counterpart, `mechanism` is ours: a SASL mechanism, or SSL for a handshake of TLS alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from kafkapy.server.observability.cluster_metrics import worst_and_mean

if TYPE_CHECKING:
    from kafkapy.server.network.connection_table import ConnectionTable

_PREFIX: Final = "kafka_server_socketservermetrics"
_LOGINS: Final = (
    ("successful_authentication", "succeeded", "Logins"),
    ("failed_authentication", "failed", "Logins that were refused"),
    ("successful_reauthentication", "renewed", "Sessions renewed"),
    ("failed_reauthentication", "failed_to_renew", "Sessions whose renewal was refused"),
)


class ListenerMetrics:
    """Makes the families out of the table of connections, when scraped."""

    def __init__(self, names: Iterable[str], connections: ConnectionTable) -> None:
        """`names` are those of the listeners that there are now."""
        self._names = tuple(names)
        self._connections = connections

    def collect(self) -> Iterator[Any]:
        logins = self._connections.logins
        count = self._connections.count_by_listener()
        yield self._gauge("connection_count", "Open connections", count)
        for name, attribute, text in _LOGINS:
            labels = ["listener", "mechanism"]
            family = CounterMetricFamily(f"{_PREFIX}_{name}", text, labels=labels)
            for login, number in getattr(logins, attribute).items():
                family.add_metric(login, number)
            yield family
        killed = logins.expired_killed
        told = "Connections closed because their sessions had ended"
        yield self._gauge("expired_connections_killed_count", told, killed)
        yield GaugeMetricFamily(
            "kafka_network_socketserver_expiredconnectionskilledcount", told, value=killed.total()
        )
        prefix = f"{_PREFIX}_reauthentication_latency"
        text = "Milliseconds to renew a session"
        times = [([listener], of) for listener, of in logins.renewal_times.items()]
        yield from worst_and_mean(prefix, text, times, ["listener"])

    def _gauge(self, name: str, text: str, values: Counter[str]) -> GaugeMetricFamily:
        family = GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=["listener"])
        for listener in self._names:
            family.add_metric([listener], values[listener])
        return family

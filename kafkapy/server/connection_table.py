"""All open connections: limits, idle closing, counts (`kafka.network.ConnectionQuotas`)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError
from kafkapy.server.addresses import numeric_address
from kafkapy.server.authentication_counts import AuthenticationCounts

if TYPE_CHECKING:
    from kafkapy.server.accept_queues import AcceptQueues
    from kafkapy.server.client_quotas import ConnectionRates
    from kafkapy.server.connection import Connection
    from kafkapy.server.kafka_config import KafkaConfig


def parse_overrides(text: str) -> dict[str, int]:
    """`host:limit,host:limit` of `max.connections.per.ip.overrides`.

    Raises:
        ConfigError: an item has another form.
    """
    limits: dict[str, int] = {}
    for item in comma_separated(text):
        host, colon, limit = item.rpartition(":")
        if not colon or not limit.isdecimal():
            raise ConfigError(
                f"max.connections.per.ip.overrides={text}: '{item}' is not host:limit"
            )
        limits[numeric_address(host) or host] = int(limit)
    return limits


class ConnectionTable:
    """Admits connections within the limits and closes the idle ones."""

    def __init__(
        self,
        config: KafkaConfig,
        rates: ConnectionRates | None = None,
        queues: AcceptQueues | None = None,
    ) -> None:
        """`rates` bounds how often addresses may connect, `queues` how often anybody."""
        self._max = config.get_int("max.connections")
        self._max_per_ip = config.get_int("max.connections.per.ip")
        self._overrides = parse_overrides(config.get_str("max.connections.per.ip.overrides"))
        self._idle_max_ms = config.get_int("connections.max.idle.ms")
        self._rates = rates
        self._queues = queues
        self._open: dict[Connection, None] = {}
        self._delayed: dict[Connection, None] = {}
        self._per_host: Counter[str] = Counter()
        self.accepted = 0
        self.rejected = 0
        self.idle_closed = 0
        self.violations = 0
        self.logins = AuthenticationCounts()

    def __len__(self) -> int:
        return len(self._open)

    def may_begin(self, connection: Connection) -> bool:
        """Whether a new connection may be served now; if not, its `begin` is called in its turn.
        Until then it is no open one."""
        if self._queues is None or self._queues.may_begin(connection):
            return True
        self._delayed[connection] = None
        return False

    def delay_ms(self, connection: Connection) -> int:
        """0, or after how many ms to close a connection of an address that comes too often. Until
        then it is no open one."""
        self._delayed.pop(connection, None)
        if self._rates is None:
            return 0
        now_ms = connection.last_active_ms
        pause_ms = self._rates.connected(connection.client_host, now_ms)
        if pause_ms:
            self.rejected += 1
            if self._queues is not None:
                self._queues.rates.address_paused(connection.listener, pause_ms, now_ms)
            self._delayed[connection] = None
        return pause_ms

    def count_by_listener(self) -> Counter[str]:
        """How many connections are open on each listener that has any."""
        return Counter(connection.listener for connection in self._open)

    def admit(self, connection: Connection) -> str | None:
        """Take the connection in, or say which limit it would pass."""
        host = connection.client_host
        per_host = self._overrides.get(host, self._max_per_ip)
        if self._per_host[host] >= per_host:
            self.rejected += 1
            return f"{host} already has max.connections.per.ip={per_host} connections"
        if len(self._open) >= self._max:
            self.rejected += 1
            return f"the broker already has max.connections={self._max} connections"
        self.accepted += 1
        self._open[connection] = None
        self._per_host[host] += 1
        return None

    def forget(self, connection: Connection) -> None:
        """The connection is closed."""
        self._delayed.pop(connection, None)
        if connection in self._open:
            del self._open[connection]
            self._per_host[connection.client_host] -= 1
            if not self._per_host[connection.client_host]:
                del self._per_host[connection.client_host]

    def close_idle(self, now_ms: int) -> None:
        """Close connections on which nothing happened for `connections.max.idle.ms`: a peer that
        neither sent anything nor waits for an answer, or one that takes nothing of its answers,
        whatever it sends meanwhile."""
        if self._idle_max_ms < 0:
            return
        for connection in list(self._open):
            if connection.quiet_ms(now_ms) > self._idle_max_ms:
                self.idle_closed += 1
                connection.close_quiet()

    def close_listener(self, listener: str) -> None:
        """Close the connections of a listener that is no more."""
        for connection in (*self._open, *self._delayed):
            if connection.listener == listener:
                connection.close()

    def close_all(self) -> None:
        for connection in (*self._open, *self._delayed):
            connection.close()

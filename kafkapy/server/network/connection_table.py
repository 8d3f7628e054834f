"""All open connections: limits, idle closing, counts (`kafka.network.ConnectionQuotas`)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from kafkapy.server.network.authentication_counts import AuthenticationCounts
from kafkapy.server.network.connection_limits import ConnectionLimits
from kafkapy.server.network.request_memory import RequestMemory
from kafkapy.server.network.unauthenticated import Unauthenticated

if TYPE_CHECKING:
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.quotas.client_quotas import ConnectionRates
    from kafkapy.server.quotas.creation_rates import CreationRates


class OpenConnection(Protocol):
    """A connection that the table may close."""

    listener: str
    client_host: str
    last_active_ms: int

    def idle_ms(self, now_ms: int) -> int:
        """The time for which the peer has been idle."""

    def close(self) -> None:
        """Close after sending buffered bytes."""

    def close_idle_peer(self) -> None:
        """Close because the peer was idle for too long."""

    def abort(self) -> None:
        """Close at once."""


class ConnectionTable:
    """Admits connections within the limits and closes the idle ones."""

    def __init__(
        self,
        config: KafkaConfig,
        limits: ConnectionLimits | None = None,
        rates: ConnectionRates | None = None,
        creations: CreationRates | None = None,
    ) -> None:
        """`rates` limits connections from one address, `creations` those from all."""
        self.limits = limits or ConnectionLimits(config)
        self._idle_max_ms = config.get_int("connections.max.idle.ms")
        self._rates = rates
        self._creations = creations
        queued_max = config.get_int("queued.max.request.bytes")
        self.memory = RequestMemory(queued_max) if queued_max > 0 else None
        self._open: dict[OpenConnection, None] = {}
        self.unauthenticated = Unauthenticated(config)
        self.accepted = 0
        self.logins = AuthenticationCounts()

    def __len__(self) -> int:
        return len(self._open)

    # one that is accepted, in this order

    async def wait_for_capacity(self, listener: str) -> None:
        """Wait until the limits allow a connection to a listener to be accepted."""
        await self.limits.wait_for_capacity(listener)

    def pause_ms(self, listener: str, now_ms: int) -> int:
        """The time in ms until an accepted connection may be served."""
        return 0 if self._creations is None else self._creations.record_connection(listener, now_ms)

    def delay_ms(self, listener: str, host: str, now_ms: int) -> int:
        """The time in ms until a connection is closed because its address connects too often; 0 to
        serve it. Until then it does not count as open.
        """
        if self._rates is None:
            return 0
        pause_ms = self._rates.record_connection(host, now_ms)
        if pause_ms and self._creations is not None:
            self._creations.record_address_pause(listener, pause_ms, now_ms)
        return pause_ms

    def admit(self, listener: str, host: str) -> str | None:
        """Count a connection until it is `opened` or lost, or return the limit that it would
        exceed.
        """
        refusal = self.limits.enter(listener, host)
        if refusal is not None:
            return refusal
        self.accepted += 1
        self.close_excess()
        return None

    def opened(self, connection: OpenConnection) -> None:
        """Add a connection, which counts until `remove`."""
        self.limits.count(connection.listener, connection.client_host)
        self._open[connection] = None

    def remove(self, connection: OpenConnection) -> None:
        """Remove a connection, which is closed."""
        if connection in self._open:
            del self._open[connection]
            self.limits.leave(connection.listener, connection.client_host)

    def close_excess(self) -> None:
        """Close client connections beyond `max.connections`, the longest idle first
        (`Processor.closeExcessConnections`).
        """
        if self.limits.excess <= 0:
            return
        protected = self.limits.is_protected
        clients = [each for each in self._open if not protected(each.listener)]
        clients.sort(key=lambda connection: connection.last_active_ms)
        for connection in clients[: self.limits.excess]:
            self.remove(connection)
            connection.abort()

    def count_by_listener(self) -> Counter[str]:
        """Numbers of open connections by listener."""
        return Counter(connection.listener for connection in self._open)

    def close_idle(self, now_ms: int) -> None:
        """Close connections whose peer was idle for `connections.max.idle.ms`: it sent nothing and
        waits for no response, or it reads nothing of its responses.
        """
        if self._idle_max_ms < 0:
            return
        for connection in list(self._open):
            if connection.idle_ms(now_ms) > self._idle_max_ms:
                connection.close_idle_peer()

    def close_listener(self, listener: str) -> None:
        """Close the connections of a removed listener."""
        for connection in list(self._open):
            if connection.listener == listener:
                connection.close()

    def close_all(self) -> None:
        for connection in list(self._open):
            connection.close()

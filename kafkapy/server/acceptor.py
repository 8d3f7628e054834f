"""The listening sockets of a broker: bound early, served when the broker is ready
(`kafka.network.SocketServer`)."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kafkapy.common.cluster_state import Endpoint
from kafkapy.common.errors import ConfigError
from kafkapy.protocol.server_connection import ServerConnection
from kafkapy.server.connection import Connection
from kafkapy.server.sasl_connection import SaslConnection
from kafkapy.server.tls_connection import TlsConnection

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.server.connection_table import ConnectionTable
    from kafkapy.server.dispatcher import Dispatcher
    from kafkapy.server.kafka_config import KafkaConfig
    from kafkapy.server.listener_security import ListenerSecurity
    from kafkapy.server.listeners import Listener
    from kafkapy.server.tls_acceptor import TlsAcceptor

logger = logging.getLogger("kafka.network.SocketServer")

SCRATCH_BYTES: Final = 256 * 1024


def bind(listener: Listener) -> socket.socket:
    """A bound socket of a listener, not yet listening. Raises OSError."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listener.host, listener.port))
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


class Acceptor:
    """Binds every listener, then makes a `Connection` of each accepted socket. `security` has what
    secures each listener, by name; one that it does not have is PLAINTEXT."""

    def __init__(
        self,
        config: KafkaConfig,
        connections: ConnectionTable,
        clock: Clock,
        security: Mapping[str, ListenerSecurity],
        bind: Callable[[Listener], socket.socket] = bind,
    ) -> None:
        self._bind = bind
        self._config = config
        self._connections = connections
        self._clock = clock
        self._security = security
        self._sockets: list[tuple[Listener, socket.socket]] = []
        self._servers: list[asyncio.Server | TlsAcceptor] = []
        self._scratch = bytearray(SCRATCH_BYTES)

    def bind(self) -> None:
        """Bind all listeners, port 0 meaning any free one.

        Raises:
            ConfigError: an address cannot be bound; names the listener and the reason.
        """
        for listener in self._config.listeners:
            try:
                bound = self._bind(listener)
            except OSError as error:
                raise ConfigError(
                    f"listeners={listener.name}://{listener.host}:{listener.port} cannot be bound:"
                    f" {error.strerror or error}"
                ) from error
            self._sockets.append((listener, bound))

    def endpoints(self) -> tuple[Endpoint, ...]:
        """What to advertise: as configured, with bound ports and a host name filled in."""
        ports = {listener.name: s.getsockname()[1] for listener, s in self._sockets}
        return tuple(
            Endpoint(
                listener.name,
                listener.host if listener.host not in ("", "0.0.0.0", "::") else _host_name(),
                listener.port or ports[listener.name],
                listener.security_protocol,
            )
            for listener in self._config.advertised_listeners
        )

    async def serve(self, dispatcher: Dispatcher) -> None:
        """Begin to accept."""
        loop = asyncio.get_running_loop()
        backlog = self._config.get_int("socket.listen.backlog.size")
        for listener, bound in self._sockets:
            new_connection = partial(self._connection, listener.name, dispatcher)
            security = self._security.get(listener.name)
            if security is None or security.tls is None:
                self._servers.append(
                    await loop.create_server(new_connection, sock=bound, backlog=backlog)
                )
            else:
                # Imported only where it is asked for, with `ssl`.
                from kafkapy.server.tls_acceptor import TlsAcceptor

                failed = partial(self._connections.logins.handshake_failed, listener.name)
                context = security.tls.accepting
                server = TlsAcceptor(listener.name, bound, context, new_connection, failed)
                server.start(backlog)
                self._servers.append(server)
            logger.info("Awaiting socket connections on %s:%d.", *bound.getsockname()[:2])

    def _connection(self, listener: str, dispatcher: Dispatcher) -> Connection:
        request_bytes_max = self._config.get_int("socket.request.max.bytes")
        wire = ServerConnection(request_bytes_max, self._scratch)
        parts = (listener, dispatcher, self._connections, wire, self._clock.monotonic_ms)
        security = self._security.get(listener)
        if security is None:
            return Connection(*parts)
        if security.sasl is not None:
            return SaslConnection(*parts, security.sasl, request_bytes_max)
        return TlsConnection(*parts, security.principals)

    def stop_accepting(self) -> None:
        """Close the listening sockets; open connections go on."""
        for server in self._servers:
            server.close()
        for _, bound in self._sockets:
            bound.close()


def _host_name() -> str:
    """This machine's name if it can be looked up, else localhost: what an empty host advertises."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name

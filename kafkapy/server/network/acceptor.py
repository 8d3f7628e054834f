"""The listening sockets of a broker: bound early, served when the broker is ready
(`kafka.network.SocketServer`)."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kafkapy.common.cluster_state import Endpoint
from kafkapy.common.errors import ConfigError
from kafkapy.common.port_holder import port_holders
from kafkapy.protocol.framing import ReceiveBuffers
from kafkapy.protocol.server_connection import ServerConnection
from kafkapy.server.network.connection import Connection
from kafkapy.server.network.listener_acceptor import ListenerAcceptor
from kafkapy.server.network.sasl_connection import SaslConnection
from kafkapy.server.network.tls_connection import TlsConnection
from kafkapy.server.network.tls_transport import TlsResources, TlsTransport

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.config.listeners import Listener
    from kafkapy.server.network.connection_table import ConnectionTable
    from kafkapy.server.requests.request_handler import RequestHandler
    from kafkapy.server.security.listener_security import ListenerSecurity

logger = logging.getLogger("kafka.network.SocketServer")

SCRATCH_BYTES: Final = 256 * 1024
_BUFFERS: Final = (
    (socket.SO_SNDBUF, "socket.send.buffer.bytes"),
    (socket.SO_RCVBUF, "socket.receive.buffer.bytes"),
)


def bind(listener: Listener) -> socket.socket:
    """A bound socket of a listener, not yet listening. Without a host it is bound to all addresses
    of both families, as in Java. Raises OSError.
    """
    has_both = not listener.host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if has_both or ":" in listener.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    if has_both:
        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listener.host, listener.port))
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


def bind_error(address: str, port: int, error: OSError) -> ConfigError:
    """The error for `address` with a port that cannot be bound. Names the process that uses the
    port."""
    holder = port_holders(port) if error.errno == errno.EADDRINUSE else ""
    return ConfigError(f"{address} cannot be bound: {error.strerror or error}{holder}")


class Acceptor:
    """Binds every listener, then makes a `Connection` of each accepted socket. `security` maps the
    names of secured listeners to their settings; others are PLAINTEXT.
    """

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
        self._sockets: dict[str, socket.socket] = {}
        self._servers: dict[str, ListenerAcceptor] = {}
        self._dispatcher: RequestHandler | None = None
        self._buffers = ReceiveBuffers(SCRATCH_BYTES)
        self._tls: TlsResources | None = None  # until there is a TLS listener

    def bind(self) -> None:
        """Bind all listeners, port 0 meaning any free one.

        Raises:
            ConfigError: an address cannot be bound; names the listener and the reason.
        """
        for listener in self._config.listeners:
            self._bind_one(listener)

    def _bind_one(self, listener: Listener) -> None:
        try:
            bound = self._bind(listener)
        except OSError as error:
            address = f"listeners={listener.name}://{listener.host}:{listener.port}"
            raise bind_error(address, listener.port, error) from error
        # Accepted sockets inherit the options of the listening one.
        for option, key in _BUFFERS:
            size_bytes = self._config.get_int(key)
            if size_bytes != -1:
                bound.setsockopt(socket.SOL_SOCKET, option, size_bytes)
        self._sockets[listener.name] = bound

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Endpoints to advertise: as configured, with bound ports and a host name filled in."""
        return tuple(
            Endpoint(
                listener.name,
                listener.host if listener.host not in ("", "0.0.0.0", "::") else _host_name(),
                listener.port or self._sockets[listener.name].getsockname()[1],
                listener.security_protocol,
            )
            for listener in self._config.advertised_listeners
            if listener.name in self._sockets
        )

    def security_protocol(self, listener: str) -> str:
        """The security protocol of a present listener; PLAINTEXT if it was just removed."""
        found = (x.security_protocol for x in self._config.listeners if x.name == listener)
        return next(found, "PLAINTEXT")

    def serve(self, dispatcher: RequestHandler) -> None:
        """Start to accept connections."""
        self._dispatcher = dispatcher
        for name in list(self._sockets):
            self._serve_one(name, dispatcher)

    def _serve_one(self, name: str, dispatcher: RequestHandler) -> None:
        bound = self._sockets[name]
        backlog = self._config.get_int("socket.listen.backlog.size")
        security = self._security.get(name)
        new_connection = partial(self._connection, name, dispatcher, security)
        new_tls = None
        if security is not None and security.tls is not None:
            self._tls = self._tls or TlsResources()
            new_tls = partial(TlsTransport, self._tls, security.tls.accept_context)
        now_ms = self._clock.monotonic_ms
        server = ListenerAcceptor(name, bound, self._connections, new_connection, now_ms, new_tls)
        server.start(backlog)
        self._servers[name] = server
        logger.info("Awaiting socket connections on %s:%d.", *bound.getsockname()[:2])

    def change(self, config: KafkaConfig, added: Mapping[str, ListenerSecurity]) -> None:
        """Change the listeners to those of `config`. Removed listeners are closed with their
        connections; new ones are opened with the security in `added`. One that cannot be bound is
        logged and left out. A listener that remains keeps its socket, even if its address changed.
        """
        self._config = config
        names = {listener.name for listener in config.listeners}
        for name in self._sockets.keys() - names:
            self._close(name)
            del self._sockets[name]
            self._connections.close_listener(name)
            logger.info("Listener %s is closed", name)
        kept = {name: self._security[name] for name in self._security.keys() & names}
        self._security = kept | dict(added)
        for listener in config.listeners:
            if listener.name in self._sockets or self._dispatcher is None:
                continue
            try:
                self._bind_one(listener)
            except ConfigError as error:
                logger.error("A new listener is left out: %s", error)
                continue
            self._serve_one(listener.name, self._dispatcher)

    def _connection(
        self, listener: str, dispatcher: RequestHandler, security: ListenerSecurity | None
    ) -> Connection:
        request_bytes_max = self._config.get_int("socket.request.max.bytes")
        wire = ServerConnection(request_bytes_max, self._buffers)
        parts = (listener, dispatcher, self._connections, wire, self._clock.monotonic_ms)
        if security is None:
            return Connection(*parts)
        if security.sasl is not None:
            return SaslConnection(*parts, security.sasl, request_bytes_max)
        return TlsConnection(*parts, security.principals)

    def stop_accepting(self) -> None:
        """Close the listening sockets. Open connections stay."""
        for name in self._sockets:
            self._close(name)
        if self._tls is not None:
            self._tls.close()

    def _close(self, name: str) -> None:
        server = self._servers.pop(name, None)
        if server is not None:
            server.close()
        self._sockets[name].close()


def _host_name() -> str:
    """The host to advertise for an empty one: this machine's name if it resolves, else
    localhost.
    """
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name

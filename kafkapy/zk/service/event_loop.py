"""The service on an event loop: turns, ticks and connections.

All requests that arrive in one turn of the loop are handled, then made durable by one fsync, then
answered. The fsync blocks the loop; requests that arrive meanwhile belong to the next turn. If the
write fails, the turn's replies are not sent, and the process must end. An adapter.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from errno import EAFNOSUPPORT
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from kafkapy.common.accept_loop import AcceptLoop
from kafkapy.security.tls.distinguished_name import subject_of
from kafkapy.zk.service.connection import Connection
from kafkapy.zk.service.zookeeper_service import ZooKeeperService

if TYPE_CHECKING:
    import ssl

_BACKLOG: Final = 256
_CLOSE_LIMIT_S: Final = 5.0
_HANDSHAKE_LIMIT_S: Final = 10.0

logger = logging.getLogger("kafkapy.zookeeper")


class Peer(Protocol):
    """The other side of a connection."""

    def flush(self) -> None:
        """Take the connection's queued bytes."""
        ...

    def end(self) -> None:
        """End the connection, because the server stops."""
        ...


class ZooKeeperServer:
    """The service on an event loop: turns, ticks and connections."""

    def __init__(
        self,
        service: ZooKeeperService,
        tick_s: float,
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`on_failure` is called once, when the journal cannot be written any more."""
        self.service = service
        self.has_failed = False
        self._tick_s = tick_s
        self._loop = loop
        self._on_failure = on_failure
        self._peers: dict[Connection, Peer] = {}
        self._turn_is_scheduled = False
        self._tick_timer = loop.call_later(tick_s, self._tick)

    def add_client(
        self, protocol: ClientProtocol, address: str, port: int, subject: str | None
    ) -> Connection | None:
        """Add a client's connection. Returns None if its address has too many. `subject` is the
        name in its certificate.
        """
        connection = self.service.add_connection(address, port, subject)
        if connection is not None:
            self._peers[connection] = protocol
        return connection

    def connect_locally(self, peer: Peer) -> Connection:
        """Add a connection within this process."""
        connection = self.service.add_local_connection()
        self._peers[connection] = peer
        return connection

    async def listen(
        self, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> ClientListener:
        """Accept clients at all addresses of a host. Raises OSError."""
        found = await self._loop.getaddrinfo(
            *(host or None, port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = ClientListener(f"{host}:{port}", self, self._loop, _bind(found), tls)
        listener.start()
        return listener

    def remove_connection(self, connection: Connection) -> None:
        """Remove a connection. A second call does nothing."""
        self._peers.pop(connection, None)
        self.service.remove_connection(connection)

    def schedule_turn(self) -> None:
        """Schedule a commit at the end of this turn of the loop."""
        if not self._turn_is_scheduled:
            self._turn_is_scheduled = True
            self._loop.call_soon(self.turn)

    def stop(self) -> None:
        """Close all connections. Their sessions stay in the journal."""
        self._tick_timer.cancel()
        self.turn()
        for peer in list(self._peers.values()):
            peer.end()

    def turn(self) -> None:
        """Make the changes of this turn durable, then answer."""
        self._turn_is_scheduled = False
        if self.has_failed:
            return
        try:
            ready = self.service.commit()
        except OSError as error:
            logger.error("Cannot write the journal, so this server ends: %s", error)
            self._fail(error)
            return
        except BaseException as fault:
            # Without commits, no client would get replies.
            self._fail(fault)
            raise
        for connection in ready:
            peer = self._peers.get(connection)
            if peer is not None:
                peer.flush()

    def _fail(self, fault: BaseException) -> None:
        self.has_failed = True
        self._on_failure(fault)

    def _tick(self) -> None:
        self._tick_timer = self._loop.call_later(self._tick_s, self._tick)
        self.service.tick()
        self.schedule_turn()


def _bind(found: Sequence[tuple[int, int, int, str, Any]]) -> list[socket.socket]:
    """Listening sockets at the addresses that `getaddrinfo` found. Raises OSError."""
    bound: list[socket.socket] = []
    choices = dict.fromkeys(found)
    for family, *_, address in choices:
        try:
            bound.append(socket.create_server(address, family=family, backlog=_BACKLOG))
        except OSError as error:
            # A machine without IPv6 may have ::1 as an address of localhost.
            if error.errno == EAFNOSUPPORT and len(choices) > 1:
                continue
            for each in bound:
                each.close()
            raise
        bound[-1].setblocking(False)
    return bound


class ClientListener:
    """The listening sockets for clients, from `start` until `close`."""

    def __init__(
        self,
        name: str,
        server: ZooKeeperServer,
        loop: asyncio.AbstractEventLoop,
        bound: Sequence[socket.socket],
        tls: ssl.SSLContext | None,
    ) -> None:
        self.sockets = bound
        self._server = server
        self._loop = loop
        self._tls = tls
        self._accepts = [AcceptLoop(name, each, self._begin) for each in bound]
        self._openings: dict[asyncio.Task[None], ClientProtocol] = {}

    def start(self) -> None:
        """Start to accept connections."""
        for each in self._accepts:
            each.start(_BACKLOG)

    def close(self) -> None:
        """Stop accepting connections."""
        for accepts, bound in zip(self._accepts, self.sockets, strict=True):
            accepts.close()
            bound.close()

    async def _begin(self, accepted: socket.socket) -> None:
        try:
            address = accepted.getpeername()[0]
        except OSError:  # gone already
            accepted.close()
            return
        handshakes = sum(
            each.address == address and not each.is_open for each in self._openings.values()
        )
        if not self._server.service.has_capacity(address, handshakes):
            accepted.close()
            return
        protocol = ClientProtocol(self._server, self._loop, address)
        opening = self._loop.create_task(self._open(accepted, protocol))
        self._openings[opening] = protocol
        opening.add_done_callback(self._openings.pop)

    async def _open(self, accepted: socket.socket, protocol: ClientProtocol) -> None:
        """Begin the protocol of a socket, after its handshake with TLS."""
        tls = self._tls
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else _HANDSHAKE_LIMIT_S,
            )
        except OSError as error:  # the client went away, or does not speak TLS
            logger.debug("A connection did not begin: %s", error)
            accepted.close()


class ClientProtocol(asyncio.Protocol):
    """The connection of one client. Reading pauses while the client does not read its replies."""

    def __init__(
        self, server: ZooKeeperServer, loop: asyncio.AbstractEventLoop, address: str
    ) -> None:
        self.address = address
        self._server = server
        self._loop = loop
        self._connection: Connection | None = None
        self._transport: asyncio.Transport | None = None
        self._may_write = True

    @property
    def is_open(self) -> bool:
        """Whether the handshake is over, if there is one."""
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)
        port = (transport.get_extra_info("peername") or ("", 0))[1]
        tls = transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        subject = subject_of(certificate) if certificate else None
        self._connection = self._server.add_client(self, self.address, port, subject)
        if self._connection is None:
            self._transport.abort()
        else:
            self._connection.unsent_bytes = self._unsent_bytes

    def data_received(self, data: bytes) -> None:
        if self._connection is not None:
            self._server.service.handle_data(self._connection, data)
            self._server.schedule_turn()

    def pause_writing(self) -> None:
        self._may_write = False
        self._update_reading()

    def resume_writing(self) -> None:
        self._may_write = True
        self._update_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._server.remove_connection(self._connection)
            self._connection = None
            self._server.schedule_turn()

    def flush(self) -> None:
        """Send the queued bytes; then close, or schedule the frames that wait for a turn."""
        connection, transport = self._connection, self._transport
        if connection is None or transport is None or transport.is_closing():
            return
        if data := connection.take():
            transport.write(data)
        if connection.is_closing:
            self.end()
        else:
            self._update_reading()

    def end(self) -> None:
        """Close after everything is sent, at the latest after `_CLOSE_LIMIT_S`."""
        transport = self._transport
        if transport is not None:
            transport.close()
            self._loop.call_later(_CLOSE_LIMIT_S, transport.abort)

    def _unsent_bytes(self) -> int:
        transport = self._transport
        if transport is None or transport.is_closing():
            return 0
        return transport.get_write_buffer_size()

    def _update_reading(self) -> None:
        connection, transport = self._connection, self._transport
        if connection is None or transport is None or transport.is_closing():
            return
        if self._may_write and not connection.is_stalled:
            transport.resume_reading()
        else:
            transport.pause_reading()
        if self._may_write and connection.is_stalled:
            self._loop.call_soon(self._handle_buffered)

    def _handle_buffered(self) -> None:
        connection = self._connection
        if connection is None or not connection.is_stalled:
            return
        self._server.service.handle_buffered(connection)
        self._server.schedule_turn()
        if not connection.is_stalled:
            # Without another frame there are no replies, and so no `flush` to resume reading.
            self._update_reading()

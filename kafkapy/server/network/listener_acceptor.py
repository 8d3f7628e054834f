"""Accepts the connections of one listener: rates and limits first, then TLS if the listener has it.

Each connection counts from its accept on, so that unfinished handshakes count as well.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.accept_loop import AcceptLoop
from kafkapy.server.config.addresses import client_address
from kafkapy.server.network.tls_transport import TlsTransport

if TYPE_CHECKING:
    from kafkapy.server.network.connection_table import ConnectionTable

_NewConnection = Callable[[], asyncio.BufferedProtocol]
_NewTls = Callable[[_NewConnection], TlsTransport]

logger = logging.getLogger("kafka.network.SocketServer")

DELAYED_MAX: Final = 100
"""The largest number of sockets that are kept open to slow down addresses that connect too
often.
"""
_UNREAD_BYTES_MAX: Final = 1 << 16
# OpenSSL's reasons when it gets a Kafka request, or HTTP, instead of a ClientHello.
_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


class _Handshake:
    """A TLS handshake in progress. `abort` ends its task, `_run`."""

    __slots__ = ("client_host", "task")

    def __init__(self, client_host: str) -> None:
        self.client_host = client_host
        self.task: asyncio.Task[None] | None = None

    def abort(self) -> None:
        if self.task is not None:
            _cancel_later(self.task)


class ListenerAcceptor:
    """Accepts until `close`. Fixed: the listener, its socket, the table that counts connections,
    and the protocol factory. `new_tls` is None without TLS. Otherwise it returns the protocol of an
    accepted socket, and `new_connection` that of a connection after its handshake.
    """

    def __init__(
        self,
        listener: str,
        bound: socket.socket,
        table: ConnectionTable,
        new_connection: _NewConnection,
        now_ms: Callable[[], int],
        new_tls: _NewTls | None = None,
    ) -> None:
        self._listener = listener
        self._table = table
        self._new_connection = new_connection
        self._now_ms = now_ms
        self._new_tls = new_tls
        self._accepts = AcceptLoop(
            listener, bound, self._serve, partial(table.wait_for_capacity, listener)
        )
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._delayed: dict[socket.socket, asyncio.TimerHandle] = {}

    def start(self, backlog: int) -> None:
        """Start to accept connections."""
        self._accepts.start(backlog)

    def close(self) -> None:
        """Stop accepting, and drop unfinished handshakes."""
        self._accepts.close()
        for task in list(self._tasks):
            _cancel_later(task)
        for timer in self._delayed.values():
            timer.cancel()
        for delayed in list(self._delayed):
            self._close_delayed(delayed)

    async def _serve(self, accepted: socket.socket) -> None:
        """Serve an accepted socket, unless a rate or a limit forbids it."""
        try:
            host, port = accepted.getpeername()[:2]
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Without it, a client that vanished while it waits for a response is never found.
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError:  # gone already
            accepted.close()
            return
        table, listener, client_host = self._table, self._listener, client_address(str(host))
        pause_ms = table.pause_ms(listener, self._now_ms())
        try:
            if pause_ms:  # as Kafka's acceptor: later clients wait in the backlog
                await asyncio.sleep(pause_ms / 1000)
            # Other listeners may have used the capacity since the accept began.
            await table.wait_for_capacity(listener)
        except asyncio.CancelledError:
            accepted.close()
            raise
        delay_ms = table.delay_ms(listener, client_host, self._now_ms())
        if delay_ms:
            self._delay(accepted, delay_ms)
            return
        refusal = table.admit(listener, client_host)
        if refusal is not None:
            logger.warning("Rejected connection from %s:%s: %s", client_host, port, refusal)
            _close_gracefully(accepted)
        elif self._new_tls is None:
            await self._connect(accepted, client_host)
        else:
            handshake = _Handshake(client_host)
            peer = f"{client_host}:{port}"
            work = self._perform_handshake(handshake, accepted, self._new_tls, peer)
            handshake.task = self._spawn(work)
            table.unauthenticated.begin(handshake)

    def _delay(self, accepted: socket.socket, delay_ms: int) -> None:
        """Close a socket later. If it were closed at once, the client would connect again at
        once.
        """
        if len(self._delayed) >= DELAYED_MAX:
            _close_gracefully(accepted)
            return
        call_later = asyncio.get_running_loop().call_later
        self._delayed[accepted] = call_later(delay_ms / 1000, self._close_delayed, accepted)

    def _close_delayed(self, delayed: socket.socket) -> None:
        del self._delayed[delayed]
        _close_gracefully(delayed)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task

    async def _connect(
        self, accepted: socket.socket, client_host: str, new_tls: _NewTls | None = None
    ) -> None:
        """Create the protocol of a socket. From `connection_made` on the protocol counts itself.

        Raises:
            ssl.SSLError: the handshake failed.
        """
        loop = asyncio.get_running_loop()
        try:
            if new_tls is None:
                opening = loop.connect_accepted_socket(self._new_connection, accepted)
                await _wait_until_opened(loop.create_task(opening))
            else:
                new_protocol = partial(new_tls, self._new_connection)
                _, tls = await loop.connect_accepted_socket(new_protocol, accepted)
                await tls.handshake()
        except ssl.SSLError:
            raise
        except OSError as error:  # the client went away
            logger.debug("Listener %s: a connection did not begin: %s", self._listener, error)
            accepted.close()
        finally:
            self._table.limits.leave(self._listener, client_host)

    async def _perform_handshake(
        self, handshake: _Handshake, accepted: socket.socket, new_tls: _NewTls, peer: str
    ) -> None:
        try:
            await self._connect(accepted, handshake.client_host, new_tls)
        except ssl.SSLError as error:
            self._table.logins.handshake_failed(self._listener)
            reason = error.reason or str(error)
            if reason in _NOT_TLS:
                reason = f"the client does not speak TLS, {reason}"
            logger.info("Failed authentication with %s (SSL handshake failed: %s)", peer, reason)
        finally:
            self._table.unauthenticated.end(handshake)


async def _wait_until_opened(opening: asyncio.Task[Any]) -> None:
    """Wait until a connection has begun. If the wait is cancelled, the connection begins and is
    aborted. (uvloop does not call `connection_lost` if the beginning itself is cancelled.)
    """
    try:
        await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_abort_opened)
        raise


def _abort_opened(opening: asyncio.Task[Any]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        transport, _ = opening.result()
        transport.abort()


def _cancel_later(task: asyncio.Task[None]) -> None:
    """Cancel a task in the next turn. A task that is cancelled before its first step never runs, so
    its connection would stay counted.
    """
    asyncio.get_running_loop().call_soon(task.cancel)


def _close_gracefully(accepted: socket.socket) -> None:
    """Close a socket, after reading what was received: otherwise the client would get a reset."""
    try:
        accepted.recv(_UNREAD_BYTES_MAX, socket.MSG_DONTWAIT)
    except OSError:
        pass  # no bytes were received, or the client is gone
    accepted.close()

"""A listening socket whose connections begin with TLS.

`loop.create_server(ssl=...)` keeps a failed handshake to itself. Here each accepted socket has a
task until its handshake is over, so that a failure is one line of the log.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

logger = logging.getLogger("kafka.network.SocketServer")

ACCEPT_BACKOFF_S: Final = 1.0
# What OpenSSL makes of a Kafka request, or of HTTP, where a ClientHello should be.
_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


class TlsAcceptor:
    """Accepts until `close`. Fixed: the bound socket, what gives contexts and protocols, and who is
    told of each handshake that failed."""

    def __init__(
        self,
        listener: str,
        bound: socket.socket,
        context: Callable[[], ssl.SSLContext],
        new_connection: Callable[[], asyncio.BaseProtocol],
        on_failure: Callable[[], None],
    ) -> None:
        self._listener = listener
        self._bound = bound
        self._context = context
        self._new_connection = new_connection
        self._on_failure = on_failure
        self._tasks: dict[asyncio.Task[None], None] = {}

    def start(self, backlog: int) -> None:
        """Begin to accept."""
        self._bound.listen(backlog)
        self._spawn(asyncio.get_running_loop().create_task(self._accept()))

    def close(self) -> None:
        """Accept no more, and drop who has not shaken hands yet."""
        for task in list(self._tasks):
            task.cancel()

    def _spawn(self, task: asyncio.Task[None]) -> None:
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._bound)
            except OSError as error:  # no descriptors are left, most likely
                logger.error("Listener %s cannot accept: %s", self._listener, error)
                await asyncio.sleep(ACCEPT_BACKOFF_S)
                continue
            self._spawn(loop.create_task(self._shake_hands(accepted)))

    async def _shake_hands(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            host, port = accepted.getpeername()[:2]
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:  # gone already
            accepted.close()
            return
        try:  # from here on the transport owns the socket
            await loop.connect_accepted_socket(self._new_connection, accepted, ssl=self._context())
        except ssl.SSLError as error:
            self._on_failure()
            reason = error.reason or str(error)
            if reason in _NOT_TLS:
                reason = f"the client does not speak TLS, {reason}"
            logger.info(
                "Failed authentication with %s:%s (SSL handshake failed: %s)", host, port, reason
            )
        except OSError as error:  # the client went away, or took too long
            logger.debug("Listener %s: a TLS handshake did not end: %s", self._listener, error)

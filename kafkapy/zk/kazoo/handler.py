"""A handler for kazoo's connection thread: it connects, waits and reads.

kazoo's own handler creates an epoll for every wait, reads header and body separately, and misses
bytes that TLS has decrypted already. Here one `recv` reads everything that is available.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
from collections.abc import Sequence
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

_READ_BYTES: Final = 64 * 1024


class BufferedSocket:
    """A connected socket for kazoo, which reads ahead."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._data = b""
        self._position = 0

    def recv(self, size: int) -> bytes:
        """At most `size` bytes; b"" at the end of the stream."""
        if self._position == len(self._data):
            self._data, self._position = self._socket.recv(_READ_BYTES), 0
        start = self._position
        self._position = min(start + size, len(self._data))
        return self._data[start : self._position]

    def pending(self) -> int:
        """The number of bytes that `recv` can return without waiting. TLS has no others, because
        one read takes a whole record.
        """
        return len(self._data) - self._position

    def send(self, data: Any) -> int:
        """Send bytes. Returns the number of bytes sent."""
        return self._socket.send(data)

    def setblocking(self, blocking: bool) -> None:
        """As socket.setblocking."""
        self._socket.setblocking(blocking)

    def fileno(self) -> int:
        """As socket.fileno."""
        return self._socket.fileno()

    def shutdown(self) -> None:
        """Cut the connection, from any thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """As socket.close."""
        self._socket.close()


class Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """A handler without callback threads, with our TLS context, and with calls to stop
    connecting.
    """

    def __init__(self, connect_timeout_s: float, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._connect_timeout_s = connect_timeout_s
        self._context = context
        self._connection: BufferedSocket | None = None
        self._has_stopped_connecting = False
        self.problem = ""
        """The reason why the last attempt to connect failed."""

    def start(self) -> None:
        """Do nothing: there are no workers, as kazoo's callbacks only post to the loop."""

    def stop(self) -> None:
        """Do nothing: there are no workers."""

    def select(
        self,
        readers: Sequence[Any],
        writers: Sequence[Any],
        _: Sequence[Any],
        timeout_s: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """As select.select, except that bytes already read count too."""
        pending = [x for x in readers if isinstance(x, BufferedSocket) and x.pending()]
        if pending:
            return pending, [], []
        wanted: dict[int, int] = {}
        for flag, sockets in ((select.POLLIN, readers), (select.POLLOUT, writers)):
            for each in sockets:
                wanted[each.fileno()] = wanted.get(each.fileno(), 0) | flag
        poll = select.poll()
        for fd, flags in wanted.items():
            poll.register(fd, flags)
        found = dict(poll.poll(None if timeout_s is None else timeout_s * 1000))
        # An error or a hang-up counts as ready: reading or writing will raise it.
        return (
            [each for each in readers if found.get(each.fileno(), 0) & ~select.POLLOUT],
            [each for each in writers if found.get(each.fileno(), 0) & ~select.POLLIN],
            [],
        )

    def create_connection(
        self, address: tuple[str, int], hostname: str, **_: object
    ) -> BufferedSocket:
        """Connect to one server, with TLS if configured. Raises OSError."""
        if self._has_stopped_connecting:
            raise ConnectionAbortedError("the session is over")
        try:
            self._connection = BufferedSocket(self._connect(address, hostname))
        except OSError as error:
            self.problem = error.strerror or str(error)
            raise
        return self._connection

    def _connect(self, address: tuple[str, int], hostname: str) -> socket.socket:
        plain = socket.create_connection(address, self._connect_timeout_s)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is None:
            return plain
        try:
            return self._context.wrap_socket(plain, server_hostname=hostname)
        except OSError:
            plain.close()
            raise

    def stop_connecting(self) -> None:
        """Stop connecting. An existing connection stays."""
        self._has_stopped_connecting = True

    def disconnect(self) -> None:
        """Stop connecting, and close an existing connection."""
        self._has_stopped_connecting = True
        if self._connection is not None:
            self._connection.shutdown()


class CallbackHandler(Handler):
    """A handler with kazoo's callback threads, for a client that is used directly."""

    start = SequentialThreadingHandler.start
    stop = SequentialThreadingHandler.stop

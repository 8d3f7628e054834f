"""A TCP proxy in front of a broker that can lose the broker's answers.

The broker has then handled a request, but the client does not get the answer: the case for retries
and idempotence. Advertise the proxy's port, so that clients use it. The proxy has threads and no
event loop: librdkafka and the test's own thread run beside it.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

CHUNK_BYTES = 1 << 16
LIMIT_S = 60.0


class LossyProxy:
    """Forwards 127.0.0.1:`port` to 127.0.0.1:`target_port`, which may stop and restart."""

    def __init__(self) -> None:
        self.target_port = 0
        self._lost = 0
        self._losing = False
        self._changed = threading.Condition()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._spawn(self._accept)

    def lose_answers(self) -> None:
        """From now on lose the answers of the target; return when one was lost."""
        with self._changed:
            self._lost, self._losing = 0, True
            assert self._changed.wait_for(lambda: self._lost > 0, LIMIT_S), "no answer to lose"

    def deliver_answers(self) -> None:
        """Deliver answers again, on connections made after the target was killed."""
        with self._changed:
            self._losing = False

    def close(self) -> None:
        """End all connections and threads."""
        hang_up(self._listener)
        self._listener.close()
        with self._changed:
            open_sockets = list(self._sockets)
        for connection in open_sockets:
            hang_up(connection)
        for thread in self._threads:
            thread.join(LIMIT_S)

    def _spawn(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port), LIMIT_S)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._changed:
                self._sockets |= {client, server}
            self._spawn(self._pump, client, server, False)
            self._spawn(self._pump, server, client, True)

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        """Copy one direction until it ends, then end both."""
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if not (answers and self._lose()):
                    sink.sendall(data)
        hang_up(source)
        hang_up(sink)
        with self._changed:
            self._sockets.discard(source)
        source.close()

    def _lose(self) -> bool:
        with self._changed:
            if self._losing:
                self._lost += 1
                self._changed.notify_all()
            return self._losing

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def hang_up(connection: socket.socket) -> None:
    """Shut down both directions, which wakes the threads that read from the socket."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)

"""The program that Spark runs as its Python: it requests a worker from the fork server.

It is run by path, and imports only built-in modules, because it replaces an interpreter that would
import pyspark. It passes its standard streams and its arguments to the fork server, and exits with
the worker's status. After any fault before the fork server has accepted, it executes the plain
interpreter instead.
"""

from __future__ import annotations

import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

SOCKET_VARIABLE = "KAFKAPY_FORK_SERVER"
"""The environment variable with the path of the fork server's socket."""

READY, FORKED, REFUSED = b"r", b"t", b"n"
"""The fork server's replies: to a connection, and to the passed message. The exit status
follows.
"""

READY_LIMIT_S = 20.0
LENGTH_BYTES = 4
TYPE_CHECKING = False  # `typing` is not built in
if TYPE_CHECKING:
    from collections.abc import Callable

_STREAMS = (0, 1, 2)
_LOST = b"\1"  # the exit status of a worker whose launcher has ended


def encode_request(arguments: list[str]) -> bytes:
    """This process as a message: its length, then the interpreter, the directory, the number of
    arguments, the arguments, and the environment as NAME=value, separated by zero bytes.
    """
    parts = [os.fsencode(sys.executable), os.getcwdb(), b"%d" % len(arguments)]
    parts += [os.fsencode(word) for word in arguments]
    parts += [name + b"=" + value for name, value in os.environb.items()]
    text = b"\0".join(parts)
    return len(text).to_bytes(LENGTH_BYTES, "big") + text


def call_with_short_path(bind_or_connect: Callable[[str], None], path: str) -> None:
    """Bind or connect by a short name of the socket at `path`, through a descriptor of its
    directory: a name has at most 107 bytes, and paths of temporary directories may be longer.
    """
    directory = os.open(os.path.dirname(path), os.O_PATH)
    try:
        bind_or_connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
    finally:
        os.close(directory)


def request_worker(connection: socket, path: str, arguments: list[str]) -> bool:
    """Request a worker with these arguments over `connection`. Returns whether the fork server at
    `path` forked one.
    """
    try:
        connection.settimeout(READY_LIMIT_S)  # for the first reply: it may import modules, or hang
        call_with_short_path(connection.connect, path)
        if connection.recv(1) != READY:
            return False
        connection.settimeout(None)
        message = encode_request(arguments)
        streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in _STREAMS)
        sent = connection.sendmsg([message], [(SOL_SOCKET, SCM_RIGHTS, streams)])
        if sent < len(message):  # sending nothing to a worker that already ended would fail
            connection.sendall(message[sent:])
        return connection.recv(1) == FORKED
    except OSError:
        return False


def exit_status(connection: socket) -> int:
    """Wait for the worker's end. If this process is killed, its connection closes, and the fork
    server ends the worker.
    """
    return (connection.recv(1) or _LOST)[0]


def main(arguments: list[str]) -> None:
    """Run the worker, by the fork server or in this process."""
    path = os.environ.get(SOCKET_VARIABLE)
    connection = socket(AF_UNIX, SOCK_STREAM)
    if path is None or not request_worker(connection, path, arguments):
        os.execv(sys.executable, [sys.executable, *arguments])
    os.setpgid(0, 0)  # as pyspark.daemon does: only the JVM receives Ctrl-C
    os._exit(exit_status(connection))


if __name__ == "__main__":
    main(sys.argv[1:])

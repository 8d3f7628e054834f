"""Opens a connection: TCP, and TLS if the properties require it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Protocol

from kafkapy.client.security import Security
from kafkapy.common.errors import ApiError, ErrorCode


class Transport(Protocol):
    """The part of a socket that a channel uses."""

    def sendall(self, data: bytes, /) -> None: ...

    def recv_into(self, buffer: memoryview, /) -> int: ...

    def settimeout(self, seconds: float | None, /) -> None: ...

    def close(self) -> None: ...


Connector = Callable[[str, int, Security, float], Transport]
"""Connects to a host and port, with a time limit in seconds."""


def connect(host: str, port: int, security: Security, timeout_s: float) -> Transport:
    """A connected socket, without Nagle's delay and with keep-alive.

    Raises:
        ApiError: NETWORK_EXCEPTION, naming the peer and the reason.
    """
    try:
        # A name in bytes skips IDNA, whose tables take a millisecond to load.
        name = host.encode() if host.isascii() else host
        plain = socket.create_connection((name, port), timeout_s)  # type: ignore[arg-type]
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    except OSError as error:
        raise network_error(host, port, error) from error
    except UnicodeError as error:  # of IDNA: a part of the name is empty or too long
        raise network_error(host, port, OSError(str(error))) from error
    if not security.encrypted:
        return plain
    try:
        return security.wrap(plain, host)
    except OSError as error:
        plain.close()
        raise network_error(host, port, error) from error
    except BaseException:
        plain.close()
        raise


def network_error(host: str, port: int, error: OSError) -> ApiError:
    """One line about a connection that failed."""
    reason = "timed out" if isinstance(error, TimeoutError) else error.strerror or str(error)
    return ApiError(
        ErrorCode.NETWORK_EXCEPTION,
        f"Connection to {host}:{port} could not be established: {reason}",
    )

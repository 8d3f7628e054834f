"""Checks the ports for servers on this machine."""

from __future__ import annotations

import errno
import socket

from kafkapy.common.errors import ConfigError
from kafkapy.common.port_holder import port_holders


def free_port(host: str) -> int:
    """A port of `host` on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
    return port


def check_port(host: str, port: int, server_name: str) -> None:
    """
    Raises:
        ConfigError: another process listens on the port. The message has `server_name` and, if
            known, that process.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:  # the server itself reports all other errors
                raise ConfigError(
                    f"{server_name} cannot listen on {host}:{port}: {error.strerror}"
                    f"{port_holders(port)}"
                ) from error

"""Parses addresses of servers."""

from __future__ import annotations

from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError


def host_and_port(text: str) -> tuple[str, int] | None:
    """`host:port` or `[v6]:port` as a pair, None if the text is neither."""
    host, separator, port = text.rpartition(":")
    host = host.rpartition("://")[2].strip("[]")
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    if not separator or not host or not is_number or int(port) > 65535:
        return None
    return host, int(port)


def parse_bootstrap_servers(text: str) -> list[tuple[str, int]]:
    """`host:port,[v6]:port` as pairs.

    Raises:
        ConfigError: names the part that is not host:port.
    """
    servers = []
    for part in comma_separated(text):
        server = host_and_port(part)
        if server is None:
            raise ConfigError(f"Invalid url in bootstrap.servers: {part}")
        servers.append(server)
    if not servers:
        raise ConfigError("No resolvable bootstrap urls given in bootstrap.servers")
    return servers

"""Parses and resolves host addresses: numeric ones, and names to look up."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from typing import Final

from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError

PER_IP_OVERRIDES: Final = "max.connections.per.ip.overrides"

# Kafka's pattern for hosts, and the number of digits that its limits have.
_OVERRIDE: Final = re.compile(r"([0-9a-zA-Z%._:-]*):([0-9]{1,10})")


def numeric_address(text: str) -> str | None:
    """An address in Java's form, if `text` is one: `1.2.3` is 1.2.0.3, `::1` is 0:0:0:0:0:0:0:1."""
    try:
        return socket.inet_ntoa(socket.inet_aton(text))
    except (OSError, ValueError):  # ValueError: it has a NUL
        pass
    try:
        return client_address(str(ipaddress.ip_address(text)))
    except ValueError:
        return None


def client_address(text: str) -> str:
    """The peer address of a socket in Java's form, which Kafka's ACLs and quotas use: IPv6 with all
    groups and without zone, IPv4-mapped addresses as IPv4."""
    if ":" not in text:
        return text
    address = ipaddress.IPv6Address(text.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


def parse_overrides(text: str) -> dict[str, int]:
    """Parse the `host:limit,host:limit` of `max.connections.per.ip.overrides`.

    Raises:
        ConfigError: an item has another form.
    """
    limits: dict[str, int] = {}
    for item in comma_separated(text):
        match = _OVERRIDE.fullmatch(item)
        if match is None:
            raise ConfigError(f"{PER_IP_OVERRIDES}={text}: '{item}' is not host:limit")
        limits[numeric_address(match[1]) or match[1]] = int(match[2])
    return limits


async def resolve(host: str) -> str | None:
    """The first address of a name, IPv4 before IPv6; None if it cannot be resolved."""
    address = numeric_address(host)
    if address is not None or "\0" in host:  # the system would look up the text before a NUL
        return address
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError):  # no such name, or an invalid one
        return None
    ordered = sorted(found, key=lambda row: row[0] != socket.AF_INET)
    return client_address(str(ordered[0][4][0])) if ordered else None

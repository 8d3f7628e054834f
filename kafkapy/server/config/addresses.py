"""Addresses of machines, from what people write for them: numbers, or names to look up."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from typing import Final

from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError

PER_IP_OVERRIDES: Final = "max.connections.per.ip.overrides"

# Kafka's pattern of hosts, and as many digits as its limits have.
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
    """The address of a peer, as a socket tells it, in Java's form, which access control entries and
    quotas of Kafka have: all groups of IPv6 and no zone; IPv4 for what is IPv4 mapped into it."""
    if ":" not in text:
        return text
    address = ipaddress.IPv6Address(text.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


def parse_overrides(text: str) -> dict[str, int]:
    """`host:limit,host:limit` of `max.connections.per.ip.overrides`.

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
    """The first address of a name, IPv4 before IPv6; None if nobody knows one."""
    address = numeric_address(host)
    if address is not None or "\0" in host:  # the system looks up what is before a NUL
        return address
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError):  # no such name, or none that could be one
        return None
    ordered = sorted(found, key=lambda row: row[0] != socket.AF_INET)
    return client_address(str(ordered[0][4][0])) if ordered else None

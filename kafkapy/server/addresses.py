"""Addresses of machines, from what people write for them: numbers, or names to look up."""

from __future__ import annotations

import asyncio
import ipaddress
import socket


def numeric_address(text: str) -> str | None:
    """An address in its usual form, if `text` is one: `1.2.3` is 1.2.0.3, as Java has it."""
    try:
        return socket.inet_ntoa(socket.inet_aton(text))
    except OSError:
        pass
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


async def resolve(host: str) -> str | None:
    """The first address of a name, IPv4 before IPv6; None if nobody knows one."""
    address = numeric_address(host)
    if address is not None:
        return address
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError):  # no such name, or none that could be one
        return None
    ordered = sorted(found, key=lambda row: row[0] != socket.AF_INET)
    return str(ordered[0][4][0]) if ordered else None

"""Parses listeners: `NAME://host:port`, the protocol map, and advertised listeners."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kafkapy.common.cluster_state import SECURITY_PROTOCOL_IDS, Endpoint
from kafkapy.common.errors import ConfigError

_LISTENER: Final = re.compile(
    r"([^:/]+)://(\[[0-9a-fA-F:.]*(?:%[0-9a-zA-Z._-]+)?\]|[^:\[\]]*):([0-9]{1,5})"
)


class Listener(NamedTuple):
    """One listener as configured; an empty host means every interface."""

    name: str
    host: str
    port: int
    security_protocol: str

    def endpoint(self) -> Endpoint:
        return Endpoint(self.name, self.host, self.port, self.security_protocol)


def parse_listeners(texts: list[str], protocol_map: list[str], key: str) -> tuple[Listener, ...]:
    """Parse the `listeners` or `advertised.listeners` list.

    Raises:
        ConfigError: a listener has another form or an unknown protocol, or its name is used twice;
        or two bound listeners have the same port.
    """
    protocols = _protocols(protocol_map)
    found: list[Listener] = []
    for text in texts:
        match = _LISTENER.fullmatch(text)
        if match is None or int(match[3]) > 65535:
            raise ConfigError(
                f"{key}={text} is not a listener: expected NAME://host:port, such as"
                " PLAINTEXT://localhost:9092"
            )
        name = match[1].upper()
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError(
                f"{key}={text}: listener.security.protocol.map has no protocol for {name}"
            )
        if any(other.name == name for other in found):
            raise ConfigError(f"{key}: each listener must have a different name, {name} has two")
        listener = Listener(name, match[2].strip("[]"), int(match[3]), protocol)
        if key == "listeners" and any(_same_socket(other, listener) for other in found):
            raise ConfigError(
                f"{key}: each listener must have a different port, {listener.port} has two"
            )
        found.append(listener)
    if not found:
        raise ConfigError(f"{key} is empty: name at least one listener")
    return tuple(found)


def parse_advertised_listeners(
    listeners: tuple[Listener, ...], texts: list[str], protocol_map: list[str]
) -> tuple[Listener, ...]:
    """The advertised listeners: as given, else the bound ones.

    Raises:
        ConfigError: a wildcard host is advertised, or a listener that is not bound.
    """
    if not texts:
        return listeners
    found = parse_listeners(texts, protocol_map, "advertised.listeners")
    bound = {listener.name for listener in listeners}
    for listener in found:
        if listener.host in ("0.0.0.0", "::"):
            raise ConfigError(
                f"advertised.listeners cannot use the nonroutable address {listener.host}:"
                " name a host that clients can reach"
            )
        if listener.name not in bound:
            raise ConfigError(
                f"advertised.listeners names {listener.name}, which is not among listeners:"
                f" {', '.join(sorted(bound))}"
            )
    return found


def _same_socket(a: Listener, b: Listener) -> bool:
    """Whether both use the same port. 0 is any free port; IPv4 and IPv6 have separate ports. A
    listener without a host uses both.
    """
    has_both = not a.host or not b.host
    return a.port == b.port != 0 and (has_both or (":" in a.host) == (":" in b.host))


def _protocols(protocol_map: list[str]) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for item in protocol_map:
        name, colon, protocol = item.partition(":")
        if not colon or protocol.upper() not in SECURITY_PROTOCOL_IDS:
            raise ConfigError(
                f"listener.security.protocol.map={item}: expected NAME:PROTOCOL with one of"
                f" {', '.join(SECURITY_PROTOCOL_IDS)}"
            )
        protocols[name.upper()] = protocol.upper()
    return protocols

"""A server's settings, from the properties of ZooKeeper's configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.zk.wire.frames import MAX_BYTES

DATA_FILE: Final = "kafkapy-znodes"
"""The journal, in the data directory."""

TICK_MS: Final = 3000
MAX_CONNECTIONS: Final = 60
_HIGHEST: Final = (1 << 31) - 1

WORDS: Final = ("ruok", "srvr", "stat", "mntr", "cons", "wchs", "conf", "isro", "envi")
"""The four-letter words that are served."""

_WHITELIST: Final = "4lw.commands.whitelist"

_USED: Final = frozenset(
    (
        *(_WHITELIST, f"zookeeper.{_WHITELIST}"),
        *("clientPort", "clientPortAddress", "dataDir", "tickTime", "maxClientCnxns"),
        *("minSessionTimeout", "maxSessionTimeout", "jute.maxbuffer"),
    )
)
# To start without these would let clients in that the file keeps out, or serve less than it says.
_REFUSED: Final = {
    "server.": "this server is no member of an ensemble",
    "secureClientPort": "this server has no TLS",
    "authProvider": "this server has the schemes digest and ip only",
    "enforce.auth": "this server has the schemes digest and ip only",
    "sessionRequireClientSASLAuth": "this server has no SASL",
    "requireClientAuthScheme": "this server has no SASL",
}


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The limits of a server. `max_connections` is by client address; 0 is no limit."""

    tick_ms: int = TICK_MS
    min_session_timeout_ms: int = 2 * TICK_MS
    max_session_timeout_ms: int = 20 * TICK_MS
    max_connections: int = MAX_CONNECTIONS
    max_frame_bytes: int = MAX_BYTES
    words: frozenset[str] = frozenset(WORDS)


def settings_from(properties: Mapping[str, str]) -> ServiceSettings:
    """The settings that a file gives.

    Raises:
        ConfigError: a value is wrong, or the file asks for what this server does not have.
    """
    for key in properties:
        for prefix, why in _REFUSED.items():
            if key.startswith(prefix):
                raise ConfigError(
                    f"{key} has no effect here, for {why}: start Apache ZooKeeper with"
                    " --implementation apache"
                )
    tick_ms = _number(properties, "tickTime", TICK_MS, 1)
    low_ms = _number(properties, "minSessionTimeout", -1, -1)
    high_ms = _number(properties, "maxSessionTimeout", -1, -1)
    low_ms = 2 * tick_ms if low_ms == -1 else low_ms
    high_ms = 20 * tick_ms if high_ms == -1 else high_ms
    if low_ms > high_ms:
        raise ConfigError(
            f"minSessionTimeout ({low_ms}) must not be larger than maxSessionTimeout ({high_ms})"
        )
    return ServiceSettings(
        tick_ms=tick_ms,
        min_session_timeout_ms=low_ms,
        max_session_timeout_ms=high_ms,
        max_connections=_number(properties, "maxClientCnxns", MAX_CONNECTIONS, 0),
        max_frame_bytes=_number(properties, "jute.maxbuffer", MAX_BYTES, 1),
        words=_words(properties),
    )


def without_effect(properties: Mapping[str, str]) -> list[str]:
    """The keys that this server ignores."""
    return sorted(properties.keys() - _USED)


def _words(properties: Mapping[str, str]) -> frozenset[str]:
    """The words that the file allows: all that are served, unless it names some."""
    text = properties.get(_WHITELIST, properties.get(f"zookeeper.{_WHITELIST}", "*"))
    named = {word.strip() for word in text.split(",")}
    return frozenset(WORDS) if "*" in named else frozenset(WORDS) & named


def _number(properties: Mapping[str, str], key: str, default: int, lowest: int) -> int:
    text = properties.get(key, str(default)).strip()
    try:
        value = int(text)
    except ValueError:
        value = _HIGHEST + 1
    if not lowest <= value <= _HIGHEST:
        raise ConfigError(
            f"Invalid value {text} for configuration {key}: it must be a number of at least"
            f" {lowest}"
        )
    return value

"""Limits of connections, counted from accept to close (`kafka.network.ConnectionQuotas` without its
rates): `max.connections` of the broker and of a listener, `max.connections.per.ip` with its
overrides, and the process's limit of open descriptors.

A connection beyond the limit of its address is refused. At the other limits nothing is accepted, so
that clients wait in the backlog. The inter-broker listener is protected when there are others: the
broker's `max.connections` does not stop it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

from kafkapy.common.java_numbers import INT_MAX
from kafkapy.server.config.addresses import (
    PER_IP_OVERRIDES,
    numeric_address,
    parse_overrides,
    resolve,
)
from kafkapy.server.config.kafka_config import BROKER_CONFIGS, KafkaConfig
from kafkapy.storage.file_records import open_files_for_logs

logger = logging.getLogger("kafka.network.SocketServer")

_MAX: Final = "max.connections"
_PER_IP: Final = "max.connections.per.ip"

RESERVE: Final = 64
"""Descriptors that are reserved for brokers, checkpoints, the journal and ZooKeeper."""
BROKERS_RESERVE: Final = 32
"""The part of `RESERVE` for connections to the inter-broker listener."""


def sockets_at_most(descriptors: int) -> int:
    """The number of connections that leaves enough descriptors for logs and everything else."""
    if descriptors <= 0:  # the system names no limit
        return INT_MAX
    return max(RESERVE, descriptors - open_files_for_logs(descriptors) - RESERVE)


class ConnectionLimits:
    """Fixed: the inter-broker listener, and the number of descriptors that this process may
    open.
    """

    def __init__(self, config: KafkaConfig, descriptors: int = 0) -> None:
        """Apply the limits of `config`.

        Raises:
            ConfigError: an override is no host:limit.
        """
        self.total = 0
        self.on_change: Callable[[], None] = lambda: None
        # Runs the look-ups of names. Until it is set, limits of names wait for the next `update`.
        self.spawn: Callable[[Coroutine[Any, Any, None]], None] | None = None
        self._inter_broker_listener = config.inter_broker_listener
        self._sockets_max = sockets_at_most(descriptors)
        self._per_host: Counter[str] = Counter()
        self._per_listener: Counter[str] = Counter()
        self._waiting: list[asyncio.Future[None]] = []
        self.set_listeners((listener.name for listener in config.listeners), config.properties)

    def set_listeners(self, listeners: Iterable[str], configs: Mapping[str, str]) -> None:
        """Replace the set of listeners. Raises ConfigError as `update`."""
        self._names = tuple(listeners)
        self.update(configs)

    def update(self, configs: Mapping[str, str]) -> None:
        """Apply the limits of the broker's configs.

        Raises:
            ConfigError: a value is not allowed; nothing has changed.
        """
        limit, per_ip = _value(configs, _MAX), _value(configs, _PER_IP)
        overrides = parse_overrides(configs.get(PER_IP_OVERRIDES, ""))
        prefixed = {name: f"listener.name.{name.lower()}.{_MAX}" for name in self._names}
        max_by_listener = {
            name: _value(configs, _MAX, key) for name, key in prefixed.items() if key in configs
        }
        self._max, self._max_per_ip = limit, per_ip
        self._overrides, self._max_by_listener = overrides, max_by_listener
        names = [host for host in overrides if numeric_address(host) is None]
        if names and self.spawn is not None:
            self.spawn(_look_up(names, overrides))
        self._wake()
        self.on_change()

    def is_protected(self, listener: str) -> bool:
        """Whether the listener is the inter-broker listener, and clients have others."""
        return listener == self._inter_broker_listener and len(self._names) > 1

    @property
    def excess(self) -> int:
        """The number of client connections to close, because brokers connected at the limit."""
        return self.total - self._max

    def has_capacity(self, listener: str) -> bool:
        """Whether a connection to a listener may be accepted now."""
        if self._per_listener[listener] >= self._max_by_listener.get(listener, INT_MAX):
            return False
        if self.is_protected(listener):
            return self.total < self._sockets_max + BROKERS_RESERVE
        return self.total < min(self._max, self._sockets_max)

    async def wait_for_capacity(self, listener: str) -> None:
        """Wait until a connection to a listener may be accepted."""
        while not self.has_capacity(listener):
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def enter(self, listener: str, host: str) -> str | None:
        """Count a connection, or return the limit of its address that it would exceed."""
        limit = self._overrides.get(host, self._max_per_ip)
        if self._per_host[host] >= limit:
            return f"{host} already has max.connections.per.ip={limit} connections"
        self.count(listener, host)
        return None

    def count(self, listener: str, host: str) -> None:
        """Count a connection, whatever the limits are."""
        self.total += 1
        self._per_host[host] += 1
        self._per_listener[listener] += 1

    def leave(self, listener: str, host: str) -> None:
        """Stop counting a connection."""
        self.total -= 1
        self._per_listener[listener] -= 1
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)


async def _look_up(names: Iterable[str], overrides: dict[str, int]) -> None:
    """Add the addresses of names to overrides, since connections have only addresses."""
    for name in names:
        address = await resolve(name)
        if address is None:
            logger.error("%s: the address of %s cannot be found", PER_IP_OVERRIDES, name)
        else:
            overrides.setdefault(address, overrides[name])


def _value(configs: Mapping[str, str], key: str, name: str = "") -> int:
    text = configs.get(name or key)
    value = BROKER_CONFIGS.keys[key].default if text is None else BROKER_CONFIGS.parse(key, text)
    assert isinstance(value, int), (key, value)
    return value

"""Rates of new connections per second, to the broker and to each of its listeners (KIP-612,
`kafka.network.ConnectionQuotas`). No loop and no clock: times are the caller's `now_ms`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kafkapy.common.sampled_stat import SampledStat
from kafkapy.server.config.kafka_config import BROKER_CONFIGS, KafkaConfig
from kafkapy.server.quotas.quota_usage import Usage, Windows, average_of_pauses

KEY: Final = "max.connection.creation.rate"


class CreationRates:
    """Fixed: the inter-broker listener. If there are other listeners, it does not count for the
    broker's rate: clients must not stop connections between brokers."""

    def __init__(self, config: KafkaConfig) -> None:
        self._windows = Windows(config)
        self._of_brokers = config.inter_broker_listener
        self.broker = Usage(self._windows)
        self.listeners: dict[str, Usage] = {}
        self._pauses_of_addresses: dict[str, SampledStat] = {}
        self.have(listener.name for listener in config.listeners)
        self.update(config.properties)

    def have(self, names: Iterable[str]) -> None:
        """Replace the set of listeners. The usage of removed listeners is dropped."""
        old, pauses = self.listeners, self._pauses_of_addresses
        self.listeners = {name: old.get(name) or Usage(self._windows) for name in names}
        self._pauses_of_addresses = {
            name: pauses.get(name) or average_of_pauses() for name in self.listeners
        }

    def update(self, given: Mapping[str, str]) -> None:
        """Apply the rates of the broker's configs. A listener without one has the broker's.

        Raises:
            ConfigError: a rate is not a number from 0 on; nothing has changed.
        """
        broker = _rate(given, KEY, BROKER_CONFIGS.keys[KEY].default)
        rates = {
            name: _rate(given, f"listener.name.{name.lower()}.{KEY}", broker)
            for name in self.listeners
        }
        self.broker.limit = broker
        for name, usage in self.listeners.items():
            usage.limit = rates[name]

    def connected(self, listener: str, now_ms: int) -> int:
        """Record a connection to a listener. Returns the ms after which it may begin, at most a
        window.

        The caller must not record another connection of the listener before this one has begun.
        """
        pause_ms, window_ms = 0, self._windows.size_ms
        if listener != self._of_brokers or len(self.listeners) == 1:
            pause_ms = self.broker.record(1, now_ms, window_ms)
        usage = self.listeners.get(listener)
        if usage is None:  # it was removed, and will close its connections
            return pause_ms
        pause_ms = max(pause_ms, usage.record(1, now_ms, window_ms))
        if pause_ms:
            usage.pauses.record(pause_ms, now_ms)
        return pause_ms

    def address_paused(self, listener: str, pause_ms: int, now_ms: int) -> None:
        """Record the pause of an address that connects to a listener too often."""
        if listener in self._pauses_of_addresses:
            self._pauses_of_addresses[listener].record(pause_ms, now_ms)

    def pauses_of_addresses(self) -> Iterator[tuple[str, SampledStat]]:
        """Pauses of addresses, by listener."""
        return iter(self._pauses_of_addresses.items())


def _rate(given: Mapping[str, str], name: str, default: object) -> int:
    rate = BROKER_CONFIGS.parse(KEY, given[name]) if name in given else default
    assert isinstance(rate, int), (name, rate)
    return rate

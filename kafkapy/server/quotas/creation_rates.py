"""Rates of new connections per second, to the broker and to each of its listeners (KIP-612,
`kafka.network.ConnectionQuotas`). No loop and no clock: times are the caller's `now_ms`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kafkapy.common.sampled_stat import SampledStat
from kafkapy.server.config.kafka_config import BROKER_CONFIGS, KafkaConfig
from kafkapy.server.quotas.quota_usage import Usage, Windows, pause_stat

KEY: Final = "max.connection.creation.rate"


class CreationRates:
    """Fixed: the inter-broker listener. If there are other listeners, it does not count for the
    broker's rate: clients must not stop connections between brokers."""

    def __init__(self, config: KafkaConfig) -> None:
        self._windows = Windows(config)
        self._inter_broker_listener = config.inter_broker_listener
        self.broker = Usage(self._windows)
        self.listeners: dict[str, Usage] = {}
        self._address_pauses: dict[str, SampledStat] = {}
        self.set_listeners(listener.name for listener in config.listeners)
        self.update(config.properties)

    def set_listeners(self, names: Iterable[str]) -> None:
        """Replace the set of listeners. The usage of removed listeners is dropped."""
        old, pauses = self.listeners, self._address_pauses
        self.listeners = {name: old.get(name) or Usage(self._windows) for name in names}
        self._address_pauses = {name: pauses.get(name) or pause_stat() for name in self.listeners}

    def update(self, configs: Mapping[str, str]) -> None:
        """Apply the rates of the broker's configs. A listener without one has the broker's.

        Raises:
            ConfigError: a rate is not a number from 0 on; nothing has changed.
        """
        broker = _rate(configs, KEY, BROKER_CONFIGS.keys[KEY].default)
        rates = {
            name: _rate(configs, f"listener.name.{name.lower()}.{KEY}", broker)
            for name in self.listeners
        }
        self.broker.limit = broker
        for name, usage in self.listeners.items():
            usage.limit = rates[name]

    def record_connection(self, listener: str, now_ms: int) -> int:
        """Record a connection to a listener. Returns the ms after which it may begin, at most a
        window.

        The caller must not record another connection of the listener before this one has begun.
        """
        pause_ms, window_ms = 0, self._windows.size_ms
        if listener != self._inter_broker_listener or len(self.listeners) == 1:
            pause_ms = self.broker.record(1, now_ms, window_ms)
        usage = self.listeners.get(listener)
        if usage is None:  # it was removed, and will close its connections
            return pause_ms
        pause_ms = max(pause_ms, usage.record(1, now_ms, window_ms))
        if pause_ms:
            usage.pauses.record(pause_ms, now_ms)
        return pause_ms

    def record_address_pause(self, listener: str, pause_ms: int, now_ms: int) -> None:
        """Record the pause of an address that connects to a listener too often."""
        if listener in self._address_pauses:
            self._address_pauses[listener].record(pause_ms, now_ms)

    def address_pauses(self) -> Iterator[tuple[str, SampledStat]]:
        """Pauses of addresses, by listener."""
        return iter(self._address_pauses.items())


def _rate(configs: Mapping[str, str], name: str, default: object) -> int:
    rate = BROKER_CONFIGS.parse(KEY, configs[name]) if name in configs else default
    assert isinstance(rate, int), (name, rate)
    return rate

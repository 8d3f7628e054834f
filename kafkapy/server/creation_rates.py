"""How often connections may be made a second, to the broker and to each of its listeners (KIP-612,
`kafka.network.ConnectionQuotas`). No loop and no clock: times are the caller's `now_ms`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kafkapy.common.sampled_stat import SampledStat
from kafkapy.server.kafka_config import BROKER_CONFIGS, KafkaConfig
from kafkapy.server.quota_usage import Usage, Windows, average_of_pauses

KEY: Final = "max.connection.creation.rate"


class CreationRates:
    """Fixed: the listeners, and which of them is for brokers. That one does not count for the
    broker's rate, if there are others: clients must not keep brokers from each other."""

    def __init__(self, config: KafkaConfig) -> None:
        windows = Windows(config)
        names = [listener.name for listener in config.listeners]
        self.broker = Usage(windows)
        self.listeners = {name: Usage(windows) for name in names}
        self._pauses_of_addresses = {name: average_of_pauses() for name in names}
        self._protected = config.inter_broker_listener if len(names) > 1 else None
        self._window_ms = windows.size_ms
        self.update(config.properties)

    def update(self, given: Mapping[str, str]) -> None:
        """Take over the rates of the broker's configs. A listener without one has the broker's.

        Raises:
            ConfigError: a rate is no number from 0; nothing has changed.
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
        """A connection to a listener is made; after how many ms it may begin, a window at most.

        It counts now, and no other of the listener may be counted before it has begun.
        """
        pause_ms = 0
        if listener != self._protected:
            pause_ms = self.broker.record(1, now_ms, self._window_ms)
        usage = self.listeners[listener]
        pause_ms = max(pause_ms, usage.record(1, now_ms, self._window_ms))
        if pause_ms:
            usage.pauses.record(pause_ms, now_ms)
        return pause_ms

    def address_paused(self, listener: str, pause_ms: int, now_ms: int) -> None:
        """An address connects to a listener too often, and was made to pause."""
        self._pauses_of_addresses[listener].record(pause_ms, now_ms)

    def pauses_of_addresses(self) -> Iterator[tuple[str, SampledStat]]:
        """How long addresses were made to pause, by listener."""
        return iter(self._pauses_of_addresses.items())


def _rate(given: Mapping[str, str], name: str, default: object) -> int:
    rate = BROKER_CONFIGS.parse(KEY, given[name]) if name in given else default
    assert isinstance(rate, int), (name, rate)
    return rate

"""The configuration of each topic's logs: the topic's overrides over the broker's defaults."""

from __future__ import annotations

from collections.abc import Mapping, Set

from kafkapy.common.config_def import ConfigValue
from kafkapy.storage.log_config import LogConfig


class LogConfigs:
    """Configurations by topic, created on first use and shared by a topic's logs."""

    def __init__(self, broker_defaults: Mapping[str, ConfigValue]) -> None:
        self._defaults = dict(broker_defaults)
        self._overrides: dict[str, dict[str, str]] = {}
        self._configs: dict[str, LogConfig] = {}

    def of(self, topic: str) -> LogConfig:
        """A topic's configuration. Raises ConfigError if its overrides are not allowed."""
        config = self._configs.get(topic)
        if config is None:
            overrides = self._overrides.get(topic, {})
            config = self._configs[topic] = LogConfig.from_overrides(self._defaults, overrides)
        return config

    def set_overrides(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Set a topic's overrides, which are checked when they are used."""
        if self._overrides.get(topic) != overrides:
            self._overrides[topic] = dict(overrides)
            self._configs.pop(topic, None)

    def change(self, topic: str, overrides: Mapping[str, str]) -> LogConfig:
        """Set a topic's new overrides. Raises ConfigError, without a change, if they are not
        allowed.
        """
        config = LogConfig.from_overrides(self._defaults, overrides)
        self.set_overrides(topic, overrides)
        self._configs[topic] = config
        return config

    def drop(self, topic: str) -> None:
        """Drop the overrides and the configuration of a topic without logs."""
        self._overrides.pop(topic, None)
        self._configs.pop(topic, None)

    def keep(self, topics: Set[str]) -> None:
        """Drop those of all other topics."""
        for topic in (self._overrides.keys() | self._configs.keys()) - topics:
            self.drop(topic)

    def set_defaults(self, broker_defaults: Mapping[str, ConfigValue]) -> None:
        """Set the broker's new defaults."""
        self._defaults = dict(broker_defaults)
        self._configs.clear()

"""The configs in force now: server.properties under the dynamic layers, and those of topics, client
metrics and groups.

`/config` is the truth; the config listener and start-up put it here, and whoever must act on a
change (the log manager) is told.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from kafkapy.common.config_def import ConfigValue, ResourceType
from kafkapy.metadata.client_metrics import client_metrics_entries
from kafkapy.metadata.group_config import group_config_entries
from kafkapy.metadata.topic_config import (
    BrokerConfigLayers,
    ConfigEntry,
    broker_config_entries,
    default_broker_config_entries,
    topic_config_entries,
    topic_defaults,
)
from kafkapy.server.config.kafka_config import BROKER_CONFIGS, KafkaConfig


class DynamicConfig:
    """The layers of one broker."""

    def __init__(self, config: KafkaConfig) -> None:
        self.layers = BrokerConfigLayers(BROKER_CONFIGS, static=config.properties)
        self.topic_overrides: dict[str, Mapping[str, str]] = {}
        self._of_client_metrics: dict[str, Mapping[str, str]] = {}
        self._of_groups: dict[str, Mapping[str, str]] = {}

    def set_broker_layers(
        self, *, default: Mapping[str, str] | None = None, broker: Mapping[str, str] | None = None
    ) -> None:
        """Replace one dynamic layer or both."""
        layers = self.layers
        self.layers = BrokerConfigLayers(
            layers.definitions,
            layers.static,
            layers.dynamic_default if default is None else default,
            layers.dynamic_broker if broker is None else broker,
        )

    def change_of_own(self, configs: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """All that is given now, and what it would be with these as this broker's own layer."""
        return self.layers.given(), replace(self.layers, dynamic_broker=configs).given()

    def topic_defaults(self) -> dict[str, ConfigValue]:
        """Configs of a topic without overrides on this broker."""
        return topic_defaults(self.layers)

    def topic(
        self,
        name: str,
        overrides: Mapping[str, str] | None = None,
        keys: Collection[str] | None = None,
    ) -> list[ConfigEntry]:
        """A topic's rows of DescribeConfigs; `overrides` for one that is not known here, or is
        only being made.
        """
        known = self.topic_overrides.get(name, {}) if overrides is None else overrides
        return topic_config_entries(known, self.layers, keys)

    def set_client_metrics(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace the configs of a CLIENT_METRICS resource; one without configs is none."""
        _set(self._of_client_metrics, name, configs)

    def set_group(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Replace the configs of a group."""
        _set(self._of_groups, group_id, configs)

    def names(self, resource_type: ResourceType) -> list[str]:
        """The client metrics, or the groups, that have configs."""
        is_group = resource_type is ResourceType.GROUP
        return sorted(self._of_groups if is_group else self._of_client_metrics)

    def has_defaults_only(self, resource_type: int, name: str) -> bool:
        """Whether this is a group or client metrics without configs: any name is one."""
        if resource_type == ResourceType.GROUP:
            return name not in self._of_groups
        return resource_type == ResourceType.CLIENT_METRICS and name not in self._of_client_metrics

    def client_metrics(self, name: str, keys: Collection[str] | None = None) -> list[ConfigEntry]:
        """The rows of a CLIENT_METRICS resource."""
        return client_metrics_entries(self._of_client_metrics.get(name, {}), keys)

    def group(self, group_id: str, keys: Collection[str] | None = None) -> list[ConfigEntry]:
        """The rows of a group."""
        return group_config_entries(self._of_groups.get(group_id, {}), self.layers, keys)

    def broker(self, keys: Collection[str] | None = None) -> list[ConfigEntry]:
        """This broker's rows."""
        return broker_config_entries(self.layers, keys)

    def broker_defaults(self, keys: Collection[str] | None = None) -> list[ConfigEntry]:
        """The rows of the cluster-wide default (resource name "")."""
        return default_broker_config_entries(self.layers, keys)

    def log_defaults(self) -> dict[str, ConfigValue]:
        """Every broker key that was set in some layer, parsed: what logs take their defaults from.

        Raises:
            ConfigError: a layer holds a value that is not allowed.
        """
        keys = self.layers.definitions
        return {
            name: keys.parse(name, text)
            for name, text in self.layers.given().items()
            if name in keys.keys
        }


def _set(overrides: dict[str, Mapping[str, str]], name: str, configs: Mapping[str, str]) -> None:
    if configs:
        overrides[name] = configs
    else:
        overrides.pop(name, None)

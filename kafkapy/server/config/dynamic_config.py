"""The current configs: server.properties below the dynamic layers, and the configs of topics,
client metrics and groups.

ZooKeeper's `/config` is authoritative. The start-up and the config listener copy it to this module,
and `ConfigApplier` passes changes to the parts that use them, such as the log manager.
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
)
from kafkapy.server.config.kafka_config import BROKER_CONFIGS, KafkaConfig


class DynamicConfig:
    """The layers of one broker."""

    def __init__(self, config: KafkaConfig) -> None:
        self.layers = BrokerConfigLayers(BROKER_CONFIGS, static=config.properties)
        self.topic_overrides: dict[str, Mapping[str, str]] = {}
        self._client_metrics_configs: dict[str, Mapping[str, str]] = {}
        self._group_configs: dict[str, Mapping[str, str]] = {}

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

    def own_change(self, configs: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """The configs that are set now, and those with `configs` as this broker's own dynamic
        layer."""
        return self.layers.configured(), replace(self.layers, dynamic_broker=configs).configured()

    def topic(
        self,
        name: str,
        overrides: Mapping[str, str] | None = None,
        keys: Collection[str] | None = None,
    ) -> list[ConfigEntry]:
        """A topic's rows of DescribeConfigs. `overrides` has the configs of a topic that is not
        known here or is being created.
        """
        known = self.topic_overrides.get(name, {}) if overrides is None else overrides
        return topic_config_entries(known, self.layers, keys)

    def set_client_metrics(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace the configs of a CLIENT_METRICS resource. Empty `configs` remove it."""
        _set(self._client_metrics_configs, name, configs)

    def set_group(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Replace the configs of a group."""
        _set(self._group_configs, group_id, configs)

    def names(self, resource_type: ResourceType) -> list[str]:
        """The names of the groups, or of the client metrics, that have configs."""
        is_group = resource_type is ResourceType.GROUP
        return sorted(self._group_configs if is_group else self._client_metrics_configs)

    def has_defaults_only(self, resource_type: int, name: str) -> bool:
        """Whether this is a group or client metrics without configs, for which any name is
        valid."""
        if resource_type == ResourceType.GROUP:
            return name not in self._group_configs
        return (
            resource_type == ResourceType.CLIENT_METRICS
            and name not in self._client_metrics_configs
        )

    def client_metrics(self, name: str, keys: Collection[str] | None = None) -> list[ConfigEntry]:
        """The rows of a CLIENT_METRICS resource."""
        return client_metrics_entries(self._client_metrics_configs.get(name, {}), keys)

    def group(self, group_id: str, keys: Collection[str] | None = None) -> list[ConfigEntry]:
        """The rows of a group."""
        return group_config_entries(self._group_configs.get(group_id, {}), self.layers, keys)

    def broker(self, keys: Collection[str] | None = None) -> list[ConfigEntry]:
        """This broker's rows."""
        return broker_config_entries(self.layers, keys)

    def broker_defaults(self, keys: Collection[str] | None = None) -> list[ConfigEntry]:
        """The rows of the cluster-wide default (resource name "")."""
        return default_broker_config_entries(self.layers, keys)

    def log_defaults(self) -> dict[str, ConfigValue]:
        """The parsed values of all broker keys that a layer sets: the source of the logs' defaults.

        Raises:
            ConfigError: a layer holds a value that is not allowed.
        """
        keys = self.layers.definitions
        return {
            name: keys.parse(name, text)
            for name, text in self.layers.configured().items()
            if name in keys.keys
        }


def _set(overrides: dict[str, Mapping[str, str]], name: str, configs: Mapping[str, str]) -> None:
    if configs:
        overrides[name] = configs
    else:
        overrides.pop(name, None)

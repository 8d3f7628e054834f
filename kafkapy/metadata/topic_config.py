"""The configs in force for a topic or a broker, and the source of each value.

A topic key's value: topic override, else its broker key in the dynamic broker configs, the dynamic
cluster default, server.properties, else the default. DescribeConfigs shows all of these as
synonyms (`kafka.server.ConfigHelper`). Pure functions over the layers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkapy.common.config_def import (
    ConfigDef,
    ConfigKey,
    ConfigSource,
    ConfigType,
    ConfigValue,
    ListingRule,
    format_value,
    parse_value,
)
from kafkapy.common.topic_configs import SYNONYM_FACTOR, TOPIC_CONFIGS
from kafkapy.metadata.dynamic_broker_configs import ALL_DYNAMIC, QUOTAS, base_name

# Broker keys that stand for one setting in several units, finest first: Kafka gives the finer ones
# no default of their own.
_UNIT_GROUPS: Final = tuple(
    key.synonyms for key in TOPIC_CONFIGS.keys.values() if len(key.synonyms) > 1
)
_NO_DEFAULT: Final = frozenset(name for group in _UNIT_GROUPS for name in group[:-1])


class ConfigSynonym(NamedTuple):
    """One layer's value for a config."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One row of DescribeConfigs. `config_type` 0 (None here) is a custom key. `documentation` is
    of kafkapy's own keys only."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    read_only: bool
    config_type: ConfigType | None
    documentation: str
    synonyms: tuple[ConfigSynonym, ...]


@dataclass(frozen=True, slots=True)
class BrokerConfigLayers:
    """A broker's configs as given, text by name; `definitions` is the table of broker configs."""

    definitions: ConfigDef
    static: Mapping[str, str] = field(default_factory=dict)
    dynamic_default: Mapping[str, str] = field(default_factory=dict)
    dynamic_broker: Mapping[str, str] = field(default_factory=dict)

    def configured(self) -> dict[str, str]:
        """Values set in any layer, the strongest layer winning."""
        return {**self.static, **self.dynamic_default, **self.dynamic_broker}


def broker_value(layers: BrokerConfigLayers, name: str) -> ConfigValue:
    """A broker config's value in force.

    Raises:
        ConfigError: the strongest layer holds a value that is not allowed.
    """
    configured = layers.configured()
    if name in configured:
        return layers.definitions.parse(name, configured[name])
    return layers.definitions.keys[name].default


def topic_defaults(layers: BrokerConfigLayers) -> dict[str, ConfigValue]:
    """Every topic key with the value it has on this broker without an override.

    Raises:
        ConfigError: a layer holds a value that is not allowed.
    """
    configured = layers.configured()
    return {name: _topic_default(key, configured) for name, key in TOPIC_CONFIGS.keys.items()}


def _topic_default(key: ConfigKey, configured: Mapping[str, str]) -> ConfigValue:
    for synonym in key.synonyms:
        if synonym not in configured:
            continue
        value = parse_value(synonym, key.type, configured[synonym])
        factor = SYNONYM_FACTOR.get(synonym)
        if factor is None or not isinstance(value, int):
            return value
        return -1 if value < 0 else value * factor
    return key.default


def topic_config_entries(
    overrides: Mapping[str, str],
    layers: BrokerConfigLayers,
    names: Collection[str] | None = None,
) -> list[ConfigEntry]:
    """A topic's configs, sorted by name; `names` None is all of them.

    Raises:
        ConfigError: a value somewhere is not allowed.
    """
    defaults = topic_defaults(layers)
    entries = []
    for name, key in sorted(TOPIC_CONFIGS.keys.items()):
        if names is not None and name not in names:
            continue
        value = TOPIC_CONFIGS.parse(name, overrides[name]) if name in overrides else defaults[name]
        text = format_value(value)
        synonyms = broker_synonyms(key.synonyms, layers) if key.synonyms else ()
        if name in overrides:
            synonyms = (
                ConfigSynonym(name, text, ConfigSource.DYNAMIC_TOPIC_CONFIG),
                *synonyms,
            )
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        entries.append(
            ConfigEntry(name, text, source, False, False, key.type, key.documentation, synonyms)
        )
    return entries


def broker_config_entries(
    layers: BrokerConfigLayers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """A named broker's configs: the listed keys of the table and all given keys, sorted by name."""
    configured = layers.configured()
    listed = [n for n, key in layers.definitions.keys.items() if key.listed is ListingRule.ALWAYS]
    wanted = sorted({*listed, *configured})
    return [
        _broker_entry(name, layers, configured) for name in wanted if names is None or name in names
    ]


def default_broker_config_entries(
    layers: BrokerConfigLayers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The dynamic cluster-wide broker configs (resource name "")."""
    configured = layers.dynamic_default
    entries = []
    for name in sorted(configured):
        if names is not None and name not in names:
            continue
        entry = _broker_entry(name, layers, configured)
        synonyms = tuple(
            s for s in entry.synonyms if s.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        )
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        entries.append(entry._replace(source=source, synonyms=synonyms))
    return entries


def _broker_entry(
    name: str, layers: BrokerConfigLayers, configured: Mapping[str, str]
) -> ConfigEntry:
    key = layers.definitions.keys.get(base_name(name))
    if key is not None and key.listed is ListingRule.IF_SET_AS_PLUGIN:
        key = None
    # An unknown key may be a secret, so its value is not shown.
    sensitive = name not in QUOTAS if key is None else key.sensitive
    group = next((g for g in _UNIT_GROUPS if name in g and not _is_scheduler(name)), (name,))
    if base_name(name) != name:
        group = (name, base_name(name))
    synonyms = _drop_until(name, _layered(group, layers, sensitive))
    if sensitive:
        value = None
    elif name in configured:
        value = (
            format_value(parse_value(name, key.type, configured[name])) if key else configured[name]
        )
    else:
        value = None if key is None or name in _NO_DEFAULT else format_value(key.default)
    return ConfigEntry(
        name,
        value,
        synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        sensitive,
        name not in ALL_DYNAMIC or name in QUOTAS,
        _type_of(name, key),
        key.documentation if key else "",
        synonyms,
    )


def _type_of(name: str, key: ConfigKey | None) -> ConfigType | None:
    if key is not None:
        return key.type
    return ConfigType.LONG if name in QUOTAS else None


def _is_scheduler(name: str) -> bool:
    """Whether a key is `log.flush.scheduler.interval.ms`, a synonym of `log.flush.interval.ms` that
    has no other synonyms itself."""
    return name == "log.flush.scheduler.interval.ms"


def broker_synonyms(
    group: tuple[str, ...], layers: BrokerConfigLayers
) -> tuple[ConfigSynonym, ...]:
    """The values of broker keys in all layers, the strongest first, from the first key on."""
    return _drop_until(group[0], _layered(group, layers, False))


def _layered(
    group: tuple[str, ...], layers: BrokerConfigLayers, sensitive: bool
) -> list[ConfigSynonym]:
    found = []
    for source, layer in (
        (ConfigSource.DYNAMIC_BROKER_CONFIG, layers.dynamic_broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, layers.dynamic_default),
        (ConfigSource.STATIC_BROKER_CONFIG, layers.static),
    ):
        for name in group:
            if name in layer:
                value = None if sensitive else layer[name]
                found.append(ConfigSynonym(name, value, source))
    for name in group:
        key = layers.definitions.keys.get(name)
        if key is not None and key.listed is ListingRule.IF_SET_AS_PLUGIN:
            continue
        if key is not None and key.default is not None and name not in _NO_DEFAULT:
            value = None if sensitive else format_value(key.default)
            found.append(ConfigSynonym(name, value, ConfigSource.DEFAULT_CONFIG))
    return found


def _drop_until(name: str, synonyms: list[ConfigSynonym]) -> tuple[ConfigSynonym, ...]:
    """The list from the first synonym with this name on, as in Kafka. For example, only
    `log.retention.hours` in server.properties does not count as a source of retention.ms."""
    for i, synonym in enumerate(synonyms):
        if synonym.name == name:
            return tuple(synonyms[i:])
    return ()

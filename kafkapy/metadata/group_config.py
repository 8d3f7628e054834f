"""Configs of groups (KIP-848, KIP-932), whose defaults and bounds are the broker's `group.*`
configs (`org.apache.kafka.coordinator.group.GroupConfig`).

A key's value: the group's own, else that of its broker key (`group.` and its name), else its
default.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from kafkapy.common.config_def import (
    ConfigDef,
    ConfigKey,
    ConfigSource,
    ConfigType,
    ConfigValue,
    at_least,
    format_value,
    one_of,
)
from kafkapy.common.errors import ConfigError
from kafkapy.common.java_numbers import INT_MAX
from kafkapy.metadata.topic_config import (
    BrokerConfigLayers,
    ConfigEntry,
    ConfigSynonym,
    broker_synonyms,
    broker_value,
)

_BROKER_PREFIX: Final = "group"
"""The first word of the brokers' config names."""

_B, _I, _S = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.STRING
_DURATION: Final = re.compile(
    r"by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?", re.IGNORECASE
)


def _offset_reset(name: str, value: ConfigValue) -> None:
    if value in ("earliest", "latest") or _DURATION.fullmatch(str(value)):
        return
    raise ConfigError(
        f"Invalid value {value} for configuration {name}: Invalid value `{value}` for configuration"
        f" {name}. The value must be either 'earliest', 'latest' or of the format"
        " 'by_duration:<PnDTnHnMn.nS>'."
    )


def _number(name: str, default: int, low: int, documentation: str) -> ConfigKey:
    validator, allowed = at_least(low)
    return ConfigKey(name, _I, default, validator, allowed, documentation=documentation)


_ISOLATION: Final = one_of("read_committed", "read_uncommitted")

GROUP_CONFIGS: Final = ConfigDef(
    (
        _number("consumer.heartbeat.interval.ms", 5000, 1, "Time between heartbeats of a member."),
        _number(
            "consumer.session.timeout.ms", 45000, 1, "Time after which a silent member is removed."
        ),
        ConfigKey(
            "share.auto.offset.reset",
            _S,
            "latest",
            _offset_reset,
            "earliest, latest or by_duration:<duration>",
            documentation="Where a share group starts to read a partition.",
        ),
        _number("share.delivery.count.limit", 5, 2, "Times that a record is delivered, at most."),
        _number("share.heartbeat.interval.ms", 5000, 1, "Time between heartbeats of a member."),
        ConfigKey(
            "share.isolation.level",
            _S,
            "read_uncommitted",
            *_ISOLATION,
            documentation="Whether records of aborted transactions are delivered.",
        ),
        _number(
            "share.partition.max.record.locks",
            2000,
            100,
            "Records of a partition that members have acquired, at most.",
        ),
        _number(
            "share.record.lock.duration.ms",
            30000,
            1000,
            "Time after which an acquired record is available again.",
        ),
        ConfigKey(
            "share.renew.acknowledge.enable",
            _B,
            True,
            documentation="Whether members may extend the time for which they have a record.",
        ),
        _number(
            "share.session.timeout.ms", 45000, 1, "Time after which a silent member is removed."
        ),
    )
)
# Session timeouts must be longer than the heartbeat intervals beside them.
_TIMEOUTS_AND_INTERVALS: Final = (
    ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"),
    ("share.session.timeout.ms", "share.heartbeat.interval.ms"),
)


def validate_group_configs(
    configs: Mapping[str, str], layers: BrokerConfigLayers
) -> dict[str, ConfigValue]:
    """Parse a group's own configs, and check them against the broker's bounds.

    Raises:
        ConfigError: names the key, and what is allowed.
    """
    for name in configs:
        if name not in GROUP_CONFIGS.keys:
            raise ConfigError(f"Unknown group config name: {name}")
    parsed = {name: GROUP_CONFIGS.parse(name, text) for name, text in configs.items()}
    for name, value in parsed.items():
        low, high = _bounds(name, layers)
        low_key, high_key = _bound_keys(name)
        if isinstance(value, int) and value < low:
            raise ConfigError(f"{name} must be greater than or equal to {low_key}")
        if isinstance(value, int) and value > high:
            raise ConfigError(f"{name} must be less than or equal to {high_key}")
    for longer, shorter in _TIMEOUTS_AND_INTERVALS:
        if longer in parsed or shorter in parsed:
            timeout, interval = (group_value(name, configs, layers) for name in (longer, shorter))
            if isinstance(timeout, int) and isinstance(interval, int) and timeout <= interval:
                raise ConfigError(f"{longer} must be greater than {shorter}")
    return parsed


def bounded_group_configs(
    configs: Mapping[str, str], layers: BrokerConfigLayers
) -> dict[str, ConfigValue]:
    """A group's own configs, parsed, and limited to the bounds of this broker. The broker that
    validated them may have had other bounds.

    Raises:
        ConfigError: a key is unknown, or a value is not of its type.
    """
    bounded = {name: GROUP_CONFIGS.parse(name, text) for name, text in configs.items()}
    for name, value in bounded.items():
        low, high = _bounds(name, layers)
        if isinstance(value, int) and not isinstance(value, bool):
            bounded[name] = max(low, min(value, high))
    return bounded


def _bounds(name: str, layers: BrokerConfigLayers) -> tuple[int, int]:
    """The broker's `group.<kind>.min.<rest>` and `max`, where it has them."""
    low, high = (_limit(key, layers) for key in _bound_keys(name))
    return -INT_MAX if low is None else low, INT_MAX if high is None else high


def _bound_keys(name: str) -> tuple[str, str]:
    kind, _, rest = name.partition(".")
    return ".".join((_BROKER_PREFIX, kind, "min", rest)), ".".join(
        (_BROKER_PREFIX, kind, "max", rest)
    )


def _limit(key: str, layers: BrokerConfigLayers) -> int | None:
    limit = broker_value(layers, key) if key in layers.definitions.keys else None
    return limit if isinstance(limit, int) else None


def group_value(name: str, configs: Mapping[str, str], layers: BrokerConfigLayers) -> ConfigValue:
    """The value of one key that is in force for a group.

    Raises:
        ConfigError: a value somewhere is not allowed.
    """
    if name in configs:
        return GROUP_CONFIGS.parse(name, configs[name])
    broker_key = f"{_BROKER_PREFIX}.{name}"
    if broker_key in layers.definitions.keys:
        return broker_value(layers, broker_key)
    return GROUP_CONFIGS.keys[name].default


def group_config_entries(
    configs: Mapping[str, str], layers: BrokerConfigLayers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """A group's rows of DescribeConfigs, sorted by name; `names` None is all of them.

    Raises:
        ConfigError: a value somewhere is not allowed.
    """
    entries = []
    for name, key in sorted(GROUP_CONFIGS.keys.items()):
        if names is not None and name not in names:
            continue
        text = format_value(group_value(name, configs, layers))
        broker_key = f"{_BROKER_PREFIX}.{name}"
        synonyms: tuple[ConfigSynonym, ...] = (
            ConfigSynonym(name, format_value(key.default), ConfigSource.DEFAULT_CONFIG),
        )
        if broker_key in layers.definitions.keys:
            synonyms = broker_synonyms((broker_key,), layers)
        if name in configs:
            synonyms = (ConfigSynonym(name, text, ConfigSource.DYNAMIC_GROUP_CONFIG), *synonyms)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        entries.append(
            ConfigEntry(name, text, source, False, False, key.type, key.documentation, synonyms)
        )
    return entries

"""The per-topic configuration table of Kafka 3.9 (`TopicConfig`, `LogConfig`).

`synonyms` names the broker keys that give a topic key its default, the same unit first;
`SYNONYM_FACTOR` turns the value of a coarser one (hours, minutes) into milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkapy.common.config_def import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConfigValue,
    Validator,
    at_least,
    between,
    list_of,
    matching,
    one_of,
)
from kafkapy.common.errors import ConfigError
from kafkapy.common.metadata_versions import metadata_version

LONG_MAX: Final = 2**63 - 1

SYNONYM_FACTOR: Final = {
    "log.roll.hours": 3_600_000,
    "log.roll.jitter.hours": 3_600_000,
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
}

_B, _S, _I, _L, _D, _LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.DOUBLE,
    ConfigType.LIST,
)


def _check_gzip_level(name: str, value: ConfigValue) -> None:
    if isinstance(value, int) and value != -1 and not 1 <= value <= 9:
        raise ConfigError(
            f"Invalid value {value} for configuration {name}:"
            " Value must be between 1 and 9 or equal to -1"
        )


_GZIP_LEVEL: Final = (_check_gzip_level, "[1,...,9] or -1")
_CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_THROTTLED: Final = matching(
    r"\*|none|[0-9]+:[0-9]+|",
    "the literal '*' or a list of replicas in the following format:"
    " [partitionId]:[brokerId],[partitionId]:[brokerId],...",
)


def _key(
    name: str,
    kind: ConfigType,
    default: ConfigValue,
    check: tuple[Validator, str] | None,
    *synonyms: str,
) -> ConfigKey:
    validator, allowed = check if check is not None else (None, "")
    return ConfigKey(name, kind, default, validator, allowed, synonyms)


TOPIC_CONFIGS: Final = ConfigDef(
    (
        _key("cleanup.policy", _LIST, ["delete"], list_of("compact", "delete"),
             "log.cleanup.policy"),
        _key("compression.gzip.level", _I, -1, _GZIP_LEVEL, "compression.gzip.level"),
        _key("compression.lz4.level", _I, 9, between(1, 17), "compression.lz4.level"),
        _key("compression.zstd.level", _I, 3, between(-131072, 22), "compression.zstd.level"),
        _key("compression.type", _S, "producer", one_of(*_CODECS), "compression.type"),
        _key("delete.retention.ms", _L, 86_400_000, at_least(0),
             "log.cleaner.delete.retention.ms"),
        _key("file.delete.delay.ms", _L, 60_000, at_least(0), "log.segment.delete.delay.ms"),
        _key("flush.messages", _L, LONG_MAX, at_least(1), "log.flush.interval.messages"),
        _key("flush.ms", _L, LONG_MAX, at_least(0), "log.flush.interval.ms",
             "log.flush.scheduler.interval.ms"),
        _key("follower.replication.throttled.replicas", _LIST, [], _THROTTLED),
        _key("index.interval.bytes", _I, 4096, at_least(0), "log.index.interval.bytes"),
        _key("leader.replication.throttled.replicas", _LIST, [], _THROTTLED),
        _key("local.retention.bytes", _L, -2, at_least(-2), "log.local.retention.bytes"),
        _key("local.retention.ms", _L, -2, at_least(-2), "log.local.retention.ms"),
        _key("max.compaction.lag.ms", _L, LONG_MAX, at_least(1),
             "log.cleaner.max.compaction.lag.ms"),
        _key("max.message.bytes", _I, 1_048_588, at_least(0), "message.max.bytes"),
        _key("message.downconversion.enable", _B, True, None,
             "log.message.downconversion.enable"),
        _key("message.timestamp.after.max.ms", _L, LONG_MAX, at_least(0),
             "log.message.timestamp.after.max.ms"),
        _key("message.timestamp.before.max.ms", _L, LONG_MAX, at_least(0),
             "log.message.timestamp.before.max.ms"),
        _key("message.timestamp.difference.max.ms", _L, LONG_MAX, at_least(0),
             "log.message.timestamp.difference.max.ms"),
        _key("message.timestamp.type", _S, "CreateTime", one_of("CreateTime", "LogAppendTime"),
             "log.message.timestamp.type"),
        _key("message.format.version", _S, "3.0-IV1", metadata_version(),
             "log.message.format.version"),
        _key("min.cleanable.dirty.ratio", _D, 0.5, between(0, 1),
             "log.cleaner.min.cleanable.ratio"),
        _key("min.compaction.lag.ms", _L, 0, at_least(0), "log.cleaner.min.compaction.lag.ms"),
        _key("min.insync.replicas", _I, 1, at_least(1), "min.insync.replicas"),
        _key("preallocate", _B, False, None, "log.preallocate"),
        _key("remote.log.copy.disable", _B, False, None),
        _key("remote.log.delete.on.disable", _B, False, None),
        _key("remote.storage.enable", _B, False, None),
        _key("retention.bytes", _L, -1, None, "log.retention.bytes"),
        _key("retention.ms", _L, 604_800_000, at_least(-1), "log.retention.ms",
             "log.retention.minutes", "log.retention.hours"),
        _key("segment.bytes", _I, 1_073_741_824, at_least(14), "log.segment.bytes"),
        _key("segment.index.bytes", _I, 10_485_760, at_least(4), "log.index.size.max.bytes"),
        _key("segment.jitter.ms", _L, 0, at_least(0), "log.roll.jitter.ms",
             "log.roll.jitter.hours"),
        _key("segment.ms", _L, 604_800_000, at_least(1), "log.roll.ms", "log.roll.hours"),
        _key("unclean.leader.election.enable", _B, False, None,
             "unclean.leader.election.enable"),
    )
)  # fmt: skip

_KRAFT_ONLY: Final = ("remote.log.delete.on.disable", "remote.log.copy.disable")
_TIERED: Final = "tiered storage is not served"
_OLD_FORMAT: Final = "batches are stored in format v2"
NO_EFFECT: Final[Mapping[str, str]] = {
    "local.retention.bytes": _TIERED,
    "local.retention.ms": _TIERED,
    "message.format.version": _OLD_FORMAT,
    "remote.log.copy.disable": _TIERED,
    "remote.log.delete.on.disable": _TIERED,
    "remote.storage.enable": _TIERED,
}
"""Keys without effect, with the reason. A broker logs a warning for each one that is set."""


def validate_topic_configs(configs: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Parse topic overrides, each key and their combination, as `LogConfig.validate` does.

    Raises:
        ConfigError: names the key, the value and what is allowed.
    """
    parsed: dict[str, ConfigValue] = {}
    for name, text in configs.items():
        if name not in TOPIC_CONFIGS.keys:
            raise ConfigError(f"Unknown topic config name: {name}")
        parsed[name] = TOPIC_CONFIGS.parse(name, text)
    low = parsed.get("min.compaction.lag.ms", 0)
    high = parsed.get("max.compaction.lag.ms", LONG_MAX)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > "
            f"max.compaction.lag.ms ({high})"
        )
    if parsed.get("remote.storage.enable") is True:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured"
            " with remote log storage."
        )
    if any(parsed.get(name) is True for name in _KRAFT_ONLY):
        raise ConfigError(
            f"It is invalid to set `{_KRAFT_ONLY[0]}` or `{_KRAFT_ONLY[1]}` under Zookeeper's mode."
        )
    return parsed

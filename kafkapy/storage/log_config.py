"""The effective configuration of one log (`org.apache.kafka.storage.internals.log.LogConfig`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from kafkapy.common.config_def import ConfigKey, ConfigValue
from kafkapy.common.topic_configs import (
    LONG_MAX,
    SYNONYM_FACTOR,
    TOPIC_CONFIGS,
    validate_topic_configs,
)

_DEFAULT: Final = TOPIC_CONFIGS.keys


@dataclass(frozen=True, slots=True)
class LogConfig:
    """One typed attribute per topic config; sizes in bytes, times in ms; Kafka's defaults."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1_048_588
    message_downconversion_enable: bool = True
    message_timestamp_after_max_ms: int = LONG_MAX
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_difference_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False

    @classmethod
    def from_overrides(
        cls, broker_defaults: Mapping[str, ConfigValue], overrides: Mapping[str, str]
    ) -> LogConfig:
        """Topic overrides over the broker's values (by broker key) over Kafka's defaults.

        Raises:
            ConfigError: an override is unknown or not allowed.
        """
        given = validate_topic_configs(overrides)
        # `validate_topic_configs` has checked that each value has its config's type.
        values: dict[str, Any] = {}  # type: ignore[explicit-any]
        for item in fields(cls):
            key = _DEFAULT[item.name.replace("_", ".")]
            value = given[key.name] if key.name in given else _inherited_value(key, broker_defaults)
            values[item.name] = tuple(value) if isinstance(value, list) else value
        # The deprecated limit applies only where a newer one is not set (KIP-937).
        limit = values["message_timestamp_difference_max_ms"]
        for name in ("message_timestamp_before_max_ms", "message_timestamp_after_max_ms"):
            if values[name] == LONG_MAX:
                values[name] = limit
        return cls(**values)

    @property
    def compact(self) -> bool:
        """Whether the log is compacted by key."""
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Whether old segments are deleted by size and time."""
        return "delete" in self.cleanup_policy

    @property
    def segment_age_max_ms(self) -> int:
        """The age at which a segment rolls. A compacted log must close its active segment in
        time.
        """
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms

    @property
    def log_append_time(self) -> bool:
        """Whether a record's timestamp is the time of its append."""
        return self.message_timestamp_type == "LogAppendTime"


def _inherited_value(key: ConfigKey, broker_defaults: Mapping[str, ConfigValue]) -> ConfigValue:
    for name in key.synonyms:
        value = broker_defaults.get(name)
        if value is None:
            continue
        factor = SYNONYM_FACTOR.get(name)
        # A negative number of hours or minutes means "none", whatever the unit.
        if factor is None or not isinstance(value, int):
            return value
        return value * factor if value >= 0 else -1
    return key.default

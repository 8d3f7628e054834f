"""Topic overrides over broker values over Kafka's defaults."""

from __future__ import annotations

from dataclasses import fields

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_configs import LONG_MAX, TOPIC_CONFIGS
from kafkapy.storage.log_config import LogConfig


def test_the_defaults_are_those_of_the_topic_table() -> None:
    assert LogConfig.from_overrides({}, {}) == LogConfig()
    for item in fields(LogConfig):
        default = TOPIC_CONFIGS.keys[item.name.replace("_", ".")].default
        found = getattr(LogConfig(), item.name)
        assert found == (tuple(default) if isinstance(default, list) else default)


def test_an_override_wins_over_the_broker_and_the_broker_over_the_default() -> None:
    broker = {"log.segment.bytes": 5000, "log.cleanup.policy": ["compact"]}
    assert LogConfig.from_overrides(broker, {}).segment_bytes == 5000
    config = LogConfig.from_overrides(broker, {"segment.bytes": "7000"})
    assert (config.segment_bytes, config.compact, config.delete) == (7000, True, False)


@pytest.mark.parametrize(
    ("broker", "expected"),
    [
        ({"log.retention.hours": 2}, 7_200_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 3}, 180_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 3, "log.retention.ms": 7}, 7),
        ({"log.retention.hours": -1}, -1),
        ({"log.retention.ms": None, "log.retention.hours": 168}, 604_800_000),
    ],
)
def test_the_finest_unit_wins(broker: dict[str, int | None], expected: int) -> None:
    assert LogConfig.from_overrides(broker, {}).retention_ms == expected


def test_flush_ms_falls_back_to_the_scheduler() -> None:
    broker = {"log.flush.interval.ms": None, "log.flush.scheduler.interval.ms": 9}
    assert LogConfig.from_overrides(broker, {}).flush_ms == 9


def test_the_deprecated_timestamp_limit_yields_to_the_newer_two() -> None:
    config = LogConfig.from_overrides(
        {},
        {"message.timestamp.difference.max.ms": "10", "message.timestamp.after.max.ms": "3"},
    )
    assert config.message_timestamp_before_max_ms == 10
    assert config.message_timestamp_after_max_ms == 3


def test_a_wrong_override_is_named() -> None:
    with pytest.raises(ConfigError, match=r"segment\.bytes"):
        LogConfig.from_overrides({}, {"segment.bytes": "many"})
    with pytest.raises(ConfigError, match=r"no\.such\.thing"):
        LogConfig.from_overrides({}, {"no.such.thing": "1"})


def test_only_a_compacted_log_rolls_by_compaction_lag() -> None:
    given = {"segment.ms": "100", "max.compaction.lag.ms": "30"}
    assert LogConfig.from_overrides({}, given).segment_age_max_ms == 100
    compacted = LogConfig.from_overrides({}, {**given, "cleanup.policy": "compact"})
    assert compacted.segment_age_max_ms == 30
    assert LogConfig(cleanup_policy=("compact",)).segment_age_max_ms == 604_800_000
    assert LogConfig().message_timestamp_after_max_ms == LONG_MAX
    assert LogConfig(message_timestamp_type="LogAppendTime").log_append_time

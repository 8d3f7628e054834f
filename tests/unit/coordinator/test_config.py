"""The coordinator's configuration: Kafka's keys and defaults."""

from __future__ import annotations

from dataclasses import fields

import pytest

from kafkapy.coordinator.config import GroupConfig

KAFKA_DEFAULTS = {
    "offsets.topic.num.partitions": 50,
    "offsets.retention.minutes": 10080,
    "offset.metadata.max.bytes": 4096,
    "group.initial.rebalance.delay.ms": 3000,
    "group.min.session.timeout.ms": 6000,
    "group.max.session.timeout.ms": 1800000,
    "group.max.size": 2147483647,
    "group.share.session.timeout.ms": 45_000,
    "group.share.heartbeat.interval.ms": 5_000,
    "group.share.max.size": 200,
    "group.consumer.session.timeout.ms": 45000,
    "group.consumer.heartbeat.interval.ms": 5000,
    "group.consumer.max.size": 2147483647,
    "group.consumer.assignors": ("uniform", "range"),
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.regex.refresh.interval.ms": 600000,
}


def test_the_defaults_are_kafkas() -> None:
    config = GroupConfig()
    values = {f.name.replace("_", "."): getattr(config, f.name) for f in fields(config)}
    assert values == KAFKA_DEFAULTS


def test_values_are_picked_by_key() -> None:
    config = GroupConfig.from_values({"group.max.size": 7, "log.dirs": "/x"})
    assert config == GroupConfig(group_max_size=7)


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades"),
    [
        ("disabled", False, False),
        ("upgrade", True, False),
        ("Downgrade", False, True),
        ("BIDIRECTIONAL", True, True),
    ],
)
def test_policies_of_migration(policy: str, upgrades: bool, downgrades: bool) -> None:
    config = GroupConfig.from_values({"group.consumer.migration.policy": policy})
    assert (config.may_upgrade_groups, config.may_downgrade_groups) == (upgrades, downgrades)
    assert config.may_mix_protocols is (upgrades or downgrades)


def test_retention_is_in_minutes() -> None:
    assert GroupConfig(offsets_retention_minutes=2).offsets_retention_ms == 120_000

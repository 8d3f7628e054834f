"""Configs of groups: Kafka's bounds and words, and where each value comes from."""

from __future__ import annotations

import pytest

from kafkapy.common.config_def import ConfigSource
from kafkapy.common.errors import ConfigError
from kafkapy.metadata.group_config import (
    bounded_group_configs,
    group_config_entries,
    validate_group_configs,
)
from kafkapy.metadata.topic_config import BrokerConfigLayers
from kafkapy.server.config.kafka_config import BROKER_CONFIGS

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
LAYERS = BrokerConfigLayers(BROKER_CONFIGS)
WIDE = BrokerConfigLayers(
    BROKER_CONFIGS,
    {
        "group.consumer.min.session.timeout.ms": "1",
        "group.consumer.max.session.timeout.ms": "99999",
    },
)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"nope": "1"}, "Unknown group config name: nope"),
        ({SESSION: "0"}, f"Invalid value 0 for configuration {SESSION}: Value must be at least 1"),
        (
            {SESSION: "44999"},
            f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {SESSION: "60001"},
            f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms",
        ),
        (
            {HEARTBEAT: "15001"},
            f"{HEARTBEAT} must be less than or equal to group.consumer.max.heartbeat.interval.ms",
        ),
        (
            {"share.record.lock.duration.ms": "60001"},
            "share.record.lock.duration.ms must be less than or equal to"
            " group.share.max.record.lock.duration.ms",
        ),
        (
            {"share.auto.offset.reset": "nope"},
            "Invalid value nope for configuration share.auto.offset.reset: Invalid value `nope` for"
            " configuration share.auto.offset.reset. The value must be either 'earliest', 'latest'"
            " or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        ),
        (
            {"share.isolation.level": "nope"},
            "Invalid value nope for configuration share.isolation.level: String must be one of:"
            " read_committed, read_uncommitted",
        ),
    ],
)
def test_what_is_refused(configs: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        validate_group_configs(configs, LAYERS)
    assert str(error.value) == message


@pytest.mark.parametrize("configs", [{SESSION: "5000"}, {SESSION: "6000", HEARTBEAT: "6000"}])
def test_a_session_is_longer_than_the_time_between_heartbeats(configs: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=f"{SESSION} must be greater than {HEARTBEAT}"):
        validate_group_configs(configs, WIDE)


@pytest.mark.parametrize(
    "start", ["earliest", "latest", "by_duration:PT1H", "by_duration:P1DT2.5S"]
)
def test_what_is_allowed(start: str) -> None:
    configs = {SESSION: "60000", "share.auto.offset.reset": start}
    assert validate_group_configs(configs, LAYERS) == {
        SESSION: 60000,
        "share.auto.offset.reset": start,
    }


def test_another_brokers_values_are_brought_within_this_ones_bounds() -> None:
    stored = {SESSION: "99999", HEARTBEAT: "1", "share.renew.acknowledge.enable": "false"}
    assert bounded_group_configs(stored, LAYERS) == {
        SESSION: 60000,
        HEARTBEAT: 5000,
        "share.renew.acknowledge.enable": False,
    }


def test_synonyms_are_the_groups_own_value_and_the_brokers() -> None:
    layers = BrokerConfigLayers(BROKER_CONFIGS, {f"group.{SESSION}": "46000"})
    (own,) = group_config_entries({SESSION: "50000"}, layers, [SESSION])
    assert (own.value, own.source) == ("50000", ConfigSource.DYNAMIC_GROUP_CONFIG)
    assert own.synonyms == (
        (SESSION, "50000", ConfigSource.DYNAMIC_GROUP_CONFIG),
        (f"group.{SESSION}", "46000", ConfigSource.STATIC_BROKER_CONFIG),
        (f"group.{SESSION}", "45000", ConfigSource.DEFAULT_CONFIG),
    )
    (inherited,) = group_config_entries({}, layers, [SESSION])
    assert (inherited.value, inherited.source) == ("46000", ConfigSource.STATIC_BROKER_CONFIG)
    (alone,) = group_config_entries({}, layers, ["share.isolation.level"])
    assert alone.synonyms == (
        ("share.isolation.level", "read_uncommitted", ConfigSource.DEFAULT_CONFIG),
    )

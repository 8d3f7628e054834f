"""The layers in force: dynamic for this broker, dynamic for all, server.properties, defaults."""

from __future__ import annotations

import pytest

from kafkapy.common.config_def import ConfigSource
from kafkapy.common.errors import ConfigError
from kafkapy.server.config.dynamic_config import DynamicConfig
from kafkapy.server.config.kafka_config import KafkaConfig


@pytest.fixture
def configs() -> DynamicConfig:
    return DynamicConfig(KafkaConfig({"log.retention.ms": "1", "broker.id": "1"}))


def retention(configs: DynamicConfig, topic: str = "t") -> tuple[str | None, ConfigSource]:
    [entry] = configs.topic(topic, keys=["retention.ms"])
    return entry.value, entry.source


def test_the_strongest_layer_wins_and_is_named(configs: DynamicConfig) -> None:
    assert retention(configs) == ("1", ConfigSource.STATIC_BROKER_CONFIG)
    configs.set_broker_layers(default={"log.retention.ms": "2"})
    assert retention(configs) == ("2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    configs.set_broker_layers(broker={"log.retention.ms": "3"})
    assert retention(configs) == ("3", ConfigSource.DYNAMIC_BROKER_CONFIG)
    configs.topic_overrides["t"] = {"retention.ms": "4"}
    assert retention(configs) == ("4", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert retention(configs, "u") == ("3", ConfigSource.DYNAMIC_BROKER_CONFIG)


def test_a_layer_is_replaced_whole_and_alone(configs: DynamicConfig) -> None:
    configs.set_broker_layers(default={"log.retention.ms": "2"}, broker={"log.segment.bytes": "50"})
    configs.set_broker_layers(broker={})
    assert retention(configs)[0] == "2"
    assert configs.layers.dynamic_broker == {}
    configs.set_broker_layers(default={})
    assert retention(configs)[0] == "1"


def test_a_topic_that_is_being_made_shows_what_it_will_have(configs: DynamicConfig) -> None:
    [entry] = configs.topic("new", {"retention.ms": "9"}, ["retention.ms"])
    assert (entry.value, entry.source) == ("9", ConfigSource.DYNAMIC_TOPIC_CONFIG)


def test_rows_of_this_broker_and_of_the_cluster_wide_default(configs: DynamicConfig) -> None:
    configs.set_broker_layers(default={"log.retention.ms": "2"}, broker={"log.retention.ms": "3"})
    [mine] = configs.broker(["log.retention.ms"])
    [everyones] = configs.broker_defaults()
    assert (mine.value, everyones.value) == ("3", "2")
    assert configs.broker_defaults(["log.segment.bytes"]) == []


def test_logs_get_what_was_set_somewhere_and_nothing_else(configs: DynamicConfig) -> None:
    assert configs.log_defaults() == {"log.retention.ms": 1, "broker.id": 1, "node.id": 1}
    configs.set_broker_layers(default={"log.cleanup.policy": "compact", "plugin.key": "x"})
    assert configs.log_defaults()["log.cleanup.policy"] == ["compact"]
    assert "plugin.key" not in configs.log_defaults()
    configs.set_broker_layers(broker={"log.segment.bytes": "few"})
    with pytest.raises(ConfigError, match=r"few for configuration log\.segment\.bytes"):
        configs.log_defaults()

"""A version of Kafka that does not exist is refused before it is stored."""

from __future__ import annotations

import pytest

from kafkapy.common.config_def import ConfigDef
from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_configs import TOPIC_CONFIGS, validate_topic_configs
from kafkapy.server.config.kafka_config import BROKER_CONFIGS

VALID = (
    *("0.8.0", "0.8.2.1", "0.10.0.1", "0.10.1-IV2", "1.0", "1.0.0", "1.0-IV0.3", "2.4", "3.0.1."),
    *("3.9", "3.9.1", "3.9-IV0", "4.0-IV1"),
)
INVALID = ("abc", "0.8", "0.10", "1", "3", "3.", "3.0.", "3.9-IV1", "4.0", "4.0.0", "4.1", "", "..")
KEYS = (
    (TOPIC_CONFIGS, "message.format.version"),
    (BROKER_CONFIGS, "log.message.format.version"),
    (BROKER_CONFIGS, "inter.broker.protocol.version"),
)


@pytest.mark.parametrize(("configs", "key"), KEYS)
def test_a_mistyped_version_is_refused_in_one_line(configs: ConfigDef, key: str) -> None:
    for text in INVALID:
        with pytest.raises(ConfigError) as caught:
            configs.parse(key, text)
        expected = f"Invalid value {text} for configuration {key}"
        assert str(caught.value) == f"{expected}: Version {text} is not a valid version"


@pytest.mark.parametrize(("configs", "key"), KEYS)
def test_the_versions_of_kafka_are_accepted(configs: ConfigDef, key: str) -> None:
    assert [configs.parse(key, text) for text in VALID] == list(VALID)


def test_a_topic_is_not_created_with_a_mistyped_version() -> None:
    with pytest.raises(ConfigError, match="Version abc is not a valid version"):
        validate_topic_configs({"message.format.version": "abc"})

"""Keys of functions that are not served: accepted, described, and named as without effect."""

from __future__ import annotations

from kafkapy.server.config.broker_config_table import NO_EFFECT
from kafkapy.server.config.ineffective_configs import ineffective_broker_configs
from kafkapy.server.config.kafka_config import BROKER_CONFIGS, KafkaConfig
from kafkapy.server.config.unserved_configs import UNSERVED, UNSERVED_ROWS


def test_each_is_in_the_broker_s_table_once_and_has_its_reason() -> None:
    names = [key.name for key in UNSERVED_ROWS]
    assert len(set(names)) == len(names)
    for reason, keys in UNSERVED.items():
        for key in keys:
            assert BROKER_CONFIGS.keys[key.name] is key
            assert NO_EFFECT[key.name] == reason


def test_whoever_sets_one_is_told() -> None:
    name = "remote.log.storage.system.enable"
    assert KafkaConfig({name: "true"}).get_bool(name)
    assert list(ineffective_broker_configs([name])) == [
        (name, "has no effect: tiered storage is not served")
    ]

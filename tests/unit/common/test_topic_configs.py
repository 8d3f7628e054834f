"""Topic configs: Kafka 3.9's keys and defaults, and what `LogConfig.validate` refuses."""

from __future__ import annotations

import pytest

from kafkapy.common.config_def import ConfigValue
from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_configs import SYNONYM_FACTOR, TOPIC_CONFIGS, validate_topic_configs

LONG_MAX = 2**63 - 1

# kafka-configs --describe --all of a topic on a fresh 3.9 broker.
DEFAULTS: dict[str, ConfigValue] = {
    "cleanup.policy": ["delete"],
    "compression.gzip.level": -1,
    "compression.lz4.level": 9,
    "compression.type": "producer",
    "compression.zstd.level": 3,
    "delete.retention.ms": 86400000,
    "file.delete.delay.ms": 60000,
    "flush.messages": LONG_MAX,
    "flush.ms": LONG_MAX,
    "follower.replication.throttled.replicas": [],
    "index.interval.bytes": 4096,
    "leader.replication.throttled.replicas": [],
    "local.retention.bytes": -2,
    "local.retention.ms": -2,
    "max.compaction.lag.ms": LONG_MAX,
    "max.message.bytes": 1048588,
    "message.downconversion.enable": True,
    "message.format.version": "3.0-IV1",
    "message.timestamp.after.max.ms": LONG_MAX,
    "message.timestamp.before.max.ms": LONG_MAX,
    "message.timestamp.difference.max.ms": LONG_MAX,
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": 0.5,
    "min.compaction.lag.ms": 0,
    "min.insync.replicas": 1,
    "preallocate": False,
    "remote.log.copy.disable": False,
    "remote.log.delete.on.disable": False,
    "remote.storage.enable": False,
    "retention.bytes": -1,
    "retention.ms": 604800000,
    "segment.bytes": 1073741824,
    "segment.index.bytes": 10485760,
    "segment.jitter.ms": 0,
    "segment.ms": 604800000,
    "unclean.leader.election.enable": False,
}


def test_keys_and_defaults_are_kafkas() -> None:
    assert {name: key.default for name, key in TOPIC_CONFIGS.keys.items()} == DEFAULTS


def test_every_default_passes_its_own_check() -> None:
    for name, key in TOPIC_CONFIGS.keys.items():
        if key.validator is not None:
            key.validator(name, key.default)


def test_the_first_broker_key_has_the_topic_keys_own_unit() -> None:
    for key in TOPIC_CONFIGS.keys.values():
        assert not SYNONYM_FACTOR.keys() & set(key.synonyms[:1])
    assert TOPIC_CONFIGS.keys["retention.ms"].synonyms == (
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    )
    assert SYNONYM_FACTOR["log.retention.minutes"] == 60_000
    assert SYNONYM_FACTOR["log.retention.hours"] == 3_600_000


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cleanup.policy", "compact,delete", ["compact", "delete"]),
        ("retention.ms", "-1", -1),
        ("segment.bytes", "14", 14),
        ("compression.type", "zstd", "zstd"),
        ("compression.zstd.level", "-131072", -131072),
        ("leader.replication.throttled.replicas", "0:1,12:3", ["0:1", "12:3"]),
        ("follower.replication.throttled.replicas", "*", ["*"]),
        ("leader.replication.throttled.replicas", "", []),
    ],
)
def test_allowed(name: str, text: str, value: ConfigValue) -> None:
    assert validate_topic_configs({name: text}) == {name: value}


def test_the_two_lags_of_compaction_may_be_equal() -> None:
    both = {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"}
    assert set(validate_topic_configs(both).values()) == {5}


@pytest.mark.parametrize(
    ("configs", "said"),
    [
        ({"retention": "1"}, "Unknown topic config name: retention"),
        ({"retention.ms": "-2"}, "Invalid value -2 for configuration retention.ms:"),
        ({"segment.bytes": "13"}, "Invalid value 13 for configuration segment.bytes:"),
        ({"segment.ms": "0"}, "Invalid value 0 for configuration segment.ms:"),
        ({"cleanup.policy": "archive"}, "Invalid value archive for configuration cleanup.policy:"),
        ({"compression.lz4.level": "18"}, "Invalid value 18 for configuration"),
        ({"min.cleanable.dirty.ratio": "1.1"}, "Invalid value 1.1 for configuration"),
        ({"message.timestamp.type": "createtime"}, "Invalid value createtime for"),
        ({"leader.replication.throttled.replicas": "1"}, "Invalid value [1] for configuration"),
        ({"compression.gzip.level": "0"}, "Invalid value 0 for configuration"),
        (
            {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"},
            "conflict topic config setting min.compaction.lag.ms (2) > max.compaction.lag.ms (1)",
        ),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled in the"),
        ({"remote.log.copy.disable": "true"}, "It is invalid to set `remote.log.delete.on"),
    ],
)
def test_refused(configs: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        validate_topic_configs(configs)
    assert str(refused.value).startswith(said)

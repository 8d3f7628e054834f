"""Effective values, their sources and synonyms, as Kafka's DescribeConfigs shows them."""

from __future__ import annotations

import pytest

from kafkapy.common.config_def import ConfigSource
from kafkapy.common.errors import ConfigError
from kafkapy.metadata.topic_config import (
    BrokerConfigLayers,
    ConfigEntry,
    broker_config_entries,
    broker_value,
    default_broker_config_entries,
    topic_config_entries,
    topic_defaults,
)
from kafkapy.server.config.kafka_config import BROKER_CONFIGS

SHORT = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: "topic",
    ConfigSource.DYNAMIC_BROKER_CONFIG: "broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "cluster",
    ConfigSource.STATIC_BROKER_CONFIG: "static",
    ConfigSource.DEFAULT_CONFIG: "default",
}


def layers(
    static: dict[str, str] | None = None,
    cluster: dict[str, str] | None = None,
    broker: dict[str, str] | None = None,
) -> BrokerConfigLayers:
    return BrokerConfigLayers(BROKER_CONFIGS, static or {}, cluster or {}, broker or {})


def shown(entry: ConfigEntry) -> str:
    synonyms = ", ".join(f"{SHORT[s.source]}:{s.name}={s.value}" for s in entry.synonyms)
    return f"{entry.value} from {SHORT[entry.source]} {{{synonyms}}}"


def topic_entry(name: str, given: BrokerConfigLayers, **overrides: str) -> str:
    text = {key.replace("_", "."): value for key, value in overrides.items()}
    (entry,) = topic_config_entries(text, given, [name])
    assert not entry.read_only
    return shown(entry)


def broker_entry(name: str, given: BrokerConfigLayers) -> ConfigEntry:
    (entry,) = broker_config_entries(given, [name])
    return entry


def test_each_layer_covers_the_next() -> None:
    static = {"log.segment.bytes": "1000"}
    cluster = {"log.segment.bytes": "2000"}
    broker = {"log.segment.bytes": "3000"}
    default = "default:log.segment.bytes=1073741824"
    name = "segment.bytes"
    assert topic_entry(name, layers()) == f"1073741824 from default {{{default}}}"
    assert topic_entry(name, layers(static)) == (
        f"1000 from static {{static:log.segment.bytes=1000, {default}}}"
    )
    everything = layers(static, cluster, broker)
    below = (
        "broker:log.segment.bytes=3000, cluster:log.segment.bytes=2000,"
        f" static:log.segment.bytes=1000, {default}"
    )
    assert topic_entry(name, everything) == f"3000 from broker {{{below}}}"
    assert topic_entry(name, everything, segment_bytes="4000") == (
        f"4000 from topic {{topic:segment.bytes=4000, {below}}}"
    )


def test_units_as_kafka_shows_them() -> None:
    """Kafka gives log.retention.ms no default of its own, so nothing is shown for it."""
    assert topic_entry("retention.ms", layers()) == "604800000 from default {}"
    hours = layers({"log.retention.hours": "2"})
    assert topic_entry("retention.ms", hours) == "7200000 from default {}"
    both = layers({"log.retention.hours": "2", "log.retention.ms": "5"})
    assert topic_entry("retention.ms", both) == (
        "5 from static {static:log.retention.ms=5, static:log.retention.hours=2,"
        " default:log.retention.hours=168}"
    )
    assert topic_entry("retention.ms", layers({"log.retention.minutes": "-1"})).startswith("-1 ")
    assert topic_entry("segment.ms", layers()) == "604800000 from default {}"
    assert topic_entry("flush.ms", layers()) == "9223372036854775807 from default {}"


def test_topic_keys_without_a_broker_twin() -> None:
    name = "follower.replication.throttled.replicas"
    assert topic_entry(name, layers()) == " from default {}"


def test_all_topic_keys_come_sorted() -> None:
    names = [entry.name for entry in topic_config_entries({}, layers())]
    assert names == sorted(names)
    assert {"cleanup.policy", "retention.ms", "unclean.leader.election.enable"} <= set(names)
    assert topic_config_entries({}, layers(), []) == []


def test_defaults_for_logs() -> None:
    found = topic_defaults(layers({"log.roll.hours": "1"}, {"log.cleanup.policy": "compact"}))
    assert found["segment.ms"] == 3_600_000
    assert found["cleanup.policy"] == ["compact"]
    assert found["max.message.bytes"] == 1_048_588


def test_broker_values() -> None:
    assert broker_value(layers(), "num.io.threads") == 8
    assert broker_value(layers({"num.io.threads": "4"}), "num.io.threads") == 4
    both = layers({"num.io.threads": "4"}, {"num.io.threads": "6"})
    assert broker_value(both, "num.io.threads") == 6
    with pytest.raises(ConfigError, match=r"num\.io\.threads"):
        broker_value(layers({"num.io.threads": "many"}), "num.io.threads")


def test_broker_entries() -> None:
    given = layers({"log.retention.hours": "2", "broker.id": "3"}, {"log.retention.ms": "9"})
    assert shown(broker_entry("log.retention.ms", given)) == (
        "9 from cluster {cluster:log.retention.ms=9, static:log.retention.hours=2,"
        " default:log.retention.hours=168}"
    )
    assert shown(broker_entry("log.retention.hours", given)) == (
        "2 from static {static:log.retention.hours=2, default:log.retention.hours=168}"
    )
    assert shown(broker_entry("log.retention.ms", layers())) == "None from default {}"
    assert broker_entry("broker.id", given).read_only
    assert not broker_entry("log.retention.ms", given).read_only
    assert not broker_entry("num.io.threads", given).read_only


def test_secrets_and_unknown_keys_are_not_shown() -> None:
    given = layers(
        {
            "ssl.keystore.password": "secret",
            "my.plugin.token": "x",
            "listener.name.a.ssl.key.password": "y",
        }
    )
    for name in ("ssl.keystore.password", "my.plugin.token", "listener.name.a.ssl.key.password"):
        entry = broker_entry(name, given)
        assert entry.is_sensitive
        assert entry.value is None
        assert {synonym.value for synonym in entry.synonyms} <= {None}
    assert broker_entry("my.plugin.token", given).config_type is None


def test_keys_of_the_authorizer_and_internal_ones_are_listed_where_they_are_set() -> None:
    names = {"super.users", "allow.everyone.if.no.acl.found", "log.initial.task.delay.ms"}
    assert names.isdisjoint(entry.name for entry in broker_config_entries(layers()))
    given = layers(dict.fromkeys(names, "1"))
    assert names <= {entry.name for entry in broker_config_entries(given)}
    assert broker_entry("log.initial.task.delay.ms", given).value == "1"
    for name in names - {"log.initial.task.delay.ms"}:
        entry = broker_entry(name, given)
        assert entry.is_sensitive
        assert entry.config_type is None
        assert [(s.name, s.value) for s in entry.synonyms] == [(name, None)]


def test_local_retention_has_a_twin_of_the_broker() -> None:
    given = layers({"log.local.retention.ms": "5"})
    default = "default:log.local.retention.ms=-2"
    assert topic_entry("local.retention.ms", layers()) == f"-2 from default {{{default}}}"
    assert topic_entry("local.retention.ms", given) == (
        f"5 from static {{static:log.local.retention.ms=5, {default}}}"
    )


def test_listener_keys_fall_back_to_their_base() -> None:
    name = "listener.name.inside.max.connections"
    given = layers({"max.connections": "5"}, {}, {name: "3"})
    assert shown(broker_entry(name, given)) == (
        f"3 from broker {{broker:{name}=3, static:max.connections=5,"
        " default:max.connections=2147483647}"
    )


def test_the_cluster_wide_default_shows_only_itself() -> None:
    given = layers({"num.io.threads": "4"}, {"num.io.threads": "6", "custom": "1"})
    entries = default_broker_config_entries(given)
    assert [entry.name for entry in entries] == ["custom", "num.io.threads"]
    assert shown(entries[1]) == "6 from cluster {cluster:num.io.threads=6}"
    assert default_broker_config_entries(given, ["x"]) == []

"""Configs that may change while a broker runs."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.metadata.dynamic_broker_configs import (
    ALL_DYNAMIC,
    PER_BROKER,
    base_name,
    check_values_of_listeners,
    listener_configs_at_start,
    restart_only_keys,
    validate_dynamic_configs,
)
from kafkapy.server.config.kafka_config import BROKER_CONFIGS

THREADS = {"num.io.threads": 8}


def check(per_broker: bool = True, **configs: str) -> None:
    names = {name.replace("__", "-").replace("_", "."): text for name, text in configs.items()}
    validate_dynamic_configs(names, BROKER_CONFIGS, per_broker=per_broker, current=THREADS)


@pytest.mark.parametrize(
    "configs",
    [
        {"log_retention_ms": "1000"},
        {"num_io_threads": "4"},
        {"num_io_threads": "16"},
        {"my_own_key": "anything"},
        {"leader_replication_throttled_rate": "1000"},
        {"unclean_leader_election_enable": "true", "min_insync_replicas": "2"},
        {"listener_name_inside_ssl_keystore_location": "/k"},
        {"sasl_mechanism_inter_broker_protocol": "PLAIN", "ssl_cipher_suites": "x"},
        {"listener_name_inside_num_partitions": "read when the listener is made"},
        {},
    ],
)
def test_allowed(configs: dict[str, str]) -> None:
    check(**configs)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            {"broker_id": "2", "log_dirs": "/x"},
            "Cannot update these configs dynamically: Set(broker.id, log.dirs)",
        ),
        (
            {"connections_max_reauth_ms": "1", "ssl_principal_mapping_rules": "DEFAULT"},
            "Cannot update these configs dynamically: Set(connections.max.reauth.ms,"
            " ssl.principal.mapping.rules)",
        ),
        (
            {"sasl_server_callback_handler_class": "x", "sasl_login_class": "y"},
            "Cannot update these configs dynamically: Set(sasl.login.class,"
            " sasl.server.callback.handler.class)",
        ),
        (
            {"ssl_keystore_location": "/k"},
            "These security configs can be dynamically updated only per-listener using the listener"
            " prefix: HashSet(ssl.keystore.location)",
        ),
        (
            {"log_retention_ms": "soon"},
            "Invalid value soon for configuration log.retention.ms: Not a number of type LONG"
            " (64-bit integer)",
        ),
        (
            {"follower_replication_throttled_rate": "-1"},
            "Invalid value -1 for configuration follower.replication.throttled.rate: Value must be"
            " at least 0",
        ),
        (
            {"num_io_threads": "3"},
            "Dynamic thread count update validation failed for num.io.threads=3, value should be at"
            " least half the current value 8",
        ),
        (
            {"num_io_threads": "17"},
            "Dynamic thread count update validation failed for num.io.threads=17, value should not"
            " be greater than double the current value 8",
        ),
    ],
)
def test_refused(configs: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check(**configs)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "name",
    [
        "listeners",
        "principal_builder_class",
        "sasl_mechanism_inter_broker_protocol",
        "listener_name_inside_ssl_keystore_location",
    ],
)
def test_what_belongs_to_one_broker_cannot_be_set_for_all(name: str) -> None:
    with pytest.raises(ConfigError, match="at default cluster level, broker id must be specified"):
        check(per_broker=False, **{name: "x"})


def test_some_listener_limits_can_be_set_for_all() -> None:
    check(per_broker=False, listener_name_inside_max_connections="5", max_connections="9")


def test_names() -> None:
    assert base_name("listener.name.inside.ssl.key.password") == "ssl.key.password"
    assert base_name("listener.names") == "listener.names"
    assert PER_BROKER < ALL_DYNAMIC
    assert "log.message.format.version" not in ALL_DYNAMIC


def test_a_listener_that_is_served_changes_its_stores_and_limits() -> None:
    prefix = "listener.name.inside."
    before = {f"{prefix}ssl.client.auth": "none", f"{prefix}ssl.keystore.location": "a"}
    allowed = {f"{prefix}ssl.keystore.location": "b", f"{prefix}max.connections": "5"}
    others = {"listener.name.outside.ssl.client.auth": "required", "log.retention.ms": "1"}
    assert restart_only_keys(["INSIDE"], before, {**before, **allowed, **others}) == {}


@pytest.mark.parametrize(
    ("key", "after"),
    [
        ("ssl.client.auth", {"ssl.client.auth": "required"}),
        ("ssl.client.auth", {}),
        ("plain.sasl.jaas.config", {"ssl.client.auth": "none", "plain.sasl.jaas.config": "x"}),
        (
            "connections.max.reauth.ms",
            {"ssl.client.auth": "none", "connections.max.reauth.ms": "1"},
        ),
    ],
)
def test_it_keeps_the_rest_until_a_restart(key: str, after: dict[str, str]) -> None:
    """Accepted alone, and refused with a config of all listeners, as Kafka does."""
    prefix = "listener.name.inside."
    before = {f"{prefix}ssl.client.auth": "none"}
    wanted = {prefix + name: text for name, text in after.items()}
    assert restart_only_keys(["INSIDE"], before, wanted) == {"INSIDE": [prefix + key]}
    with pytest.raises(ConfigError, match="for existing listener INSIDE, restart broker or"):
        restart_only_keys(["INSIDE"], before, {**wanted, "max.connections": "9"})


def test_values_of_a_listener_that_is_served_are_read() -> None:
    prefix, old = "listener.name.inside.", {"listener.name.inside.num.partitions": "?"}
    for key in ("connections.max.reauth.ms", "plain.connections.max.reauth.ms"):
        given = {prefix + key: "?"}
        with pytest.raises(ConfigError, match=r"Invalid value \? for configuration connections"):
            check_values_of_listeners(["INSIDE"], {}, given, BROKER_CONFIGS)
        check_values_of_listeners(["OUTSIDE"], {}, given, BROKER_CONFIGS)
        check_values_of_listeners(["INSIDE"], given, {}, BROKER_CONFIGS)
    others = {prefix + "an.own.key": "?", prefix + "super.users": "?"}
    check_values_of_listeners(["INSIDE"], old, {**old, **others}, BROKER_CONFIGS)


def test_at_a_start_listeners_and_logins_count_and_stores_where_they_are_missing() -> None:
    logins = {"listener.name.a.plain.sasl.jaas.config": "x", "sasl.jaas.config": "y"}
    stores = {"listener.name.a.ssl.keystore.password": "z"}
    listed = {"listeners": "A://:9093", "advertised.listeners": "A://h:9093"}
    listed |= {"ssl.client.auth": "required", "sasl.mechanism.inter.broker.protocol": "PLAIN"}
    configs = {**logins, **stores, **listed, "log.retention.ms": "1"}
    assert listener_configs_at_start(configs, stores=False) == {**logins, **listed}
    assert listener_configs_at_start(configs, stores=True) == {**logins, **stores, **listed}

"""Environment variables of Kafka's scripts: those that have an effect here, and the others."""

from __future__ import annotations

import os

import pytest

from kafkapy.common.java_environment import (
    LOGIN_CONFIG,
    ZOOKEEPER_SECTION,
    apply_kerberos_config,
    system_properties,
    with_login_config,
    without_effect,
)

FILE = "-Djava.security.auth.login.config"


def test_the_jaas_file_of_kafka_opts() -> None:
    environ = {"KAFKA_OPTS": f"-Xmx1g {FILE}=/old  {FILE}=/jaas.conf"}
    assert with_login_config({"a": "b"}, environ) == {"a": "b", LOGIN_CONFIG: "/jaas.conf"}
    assert with_login_config({LOGIN_CONFIG: "/own"}, environ) == {LOGIN_CONFIG: "/own"}
    assert with_login_config({}, {}) == {}


def test_the_section_for_zookeeper() -> None:
    environ = {"KAFKA_OPTS": "-Dzookeeper.sasl.clientconfig=Zk"}
    assert with_login_config({}, environ) == {ZOOKEEPER_SECTION: "Zk"}
    environ["KAFKA_OPTS"] += " -Dzookeeper.sasl.client=false"
    assert with_login_config({}, environ) == {ZOOKEEPER_SECTION: ""}


def test_properties_of_a_jvm() -> None:
    assert system_properties({"KAFKA_OPTS": "-Da=b=c -Dd"}).items() >= {"a": "b=c", "d": ""}.items()
    assert system_properties({})["user.home"] == os.path.expanduser("~")


def test_the_kerberos_library_is_told_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CONFIG", "")
    monkeypatch.delenv("KRB5_CONFIG")
    monkeypatch.setenv("KAFKA_OPTS", "-Djava.security.krb5.conf=/krb5.conf")
    apply_kerberos_config()
    assert os.environ["KRB5_CONFIG"] == "/krb5.conf"


def test_what_has_no_effect_is_named_without_its_value() -> None:
    environ = {
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseG1GC",
        "KAFKA_LOG4J_OPTS": "-Dlog4j.configuration=file:x",
        "KAFKA_OPTS": f"{FILE}=/f -javaagent:/jmx.jar=7071 -Djavax.net.ssl.keyStorePassword=secret"
        " -Dof.the.jaas.file=x",
        "JMX_PORT": "",
    }
    assert without_effect(environ) == (
        "Without effect, because there is no JVM here: KAFKA_HEAP_OPTS,"
        " KAFKA_JVM_PERFORMANCE_OPTS, KAFKA_LOG4J_OPTS, -javaagent in KAFKA_OPTS,"
        " -Djavax.net.ssl.keyStorePassword in KAFKA_OPTS"
    )
    assert without_effect(environ, starts_jvm=True) == (
        "Without effect, because ZooKeeper's logging is set here: KAFKA_LOG4J_OPTS"
    )
    assert without_effect({"KAFKA_OPTS": f"{FILE}=/f", "PATH": "/bin"}) == ""

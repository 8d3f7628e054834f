"""Connections from broker to broker: secured as the inter-broker listener requires, or refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.kerberos import gss_library
from kafkapy.security.kerberos.login import MODULE
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.security.node_security import (
    PLAINTEXT,
    NodeSecurity,
    check_login,
    node_security,
)
from kafkapy.server.security.oauth import OAuth
from tests.harness.cores.ports import ManualClock, SeededRandom

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
OWN = "listener.name.x.plain.sasl.jaas.config"


def secured(protocol: str, given: dict[str, str], tls: Any = None) -> NodeSecurity:
    config = KafkaConfig(
        {
            "zookeeper.connect": "127.0.0.1:1",
            "listeners": "X://127.0.0.1:1",
            "listener.security.protocol.map": f"X:{protocol}",
            "inter.broker.listener.name": "X",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN",
            **given,
        }
    )
    return node_security(config, SeededRandom(1), tls, OAuth(ManualClock(), SeededRandom(1)))


def test_it_logs_in_as_the_user_of_its_own_line() -> None:
    found = secured("SASL_PLAINTEXT", {OWN: f'{JAAS} username="b" password="s" user_b="s";'})
    assert (found.tls, found.mechanism) == (None, "PLAIN")
    assert found.begin_login is not None
    assert (found.thread, found.check) == (None, None)
    assert next(found.begin_login("host")) == b"\0b\0s"


def test_each_connection_has_the_stores_of_its_time() -> None:
    class Tls:
        made = 0

        def connect_context(self) -> int:
            self.made += 1
            return self.made

    found = secured("SSL", {}, Tls())
    assert found.begin_login is None
    assert found.tls is not None
    assert [found.tls(), found.tls()] == [1, 2]


def test_it_logs_in_with_others_by_kerberos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gss_library, "check_library", lambda key: None)
    keytab = 'useKeyTab=true keyTab="/k" principal="kafka/h@R"'
    given = {
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.enabled.mechanisms": "PLAIN,GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.x.gssapi.sasl.jaas.config": f"{MODULE} required {keytab};",
    }
    found = secured("SASL_PLAINTEXT", given)
    assert (found.mechanism, found.begin_login is None) == ("GSSAPI", False)
    assert found.thread is not None
    with_rehearsal = found._replace(check=lambda: rehearsed.append(True))
    rehearsed: list[bool] = []
    asyncio.run(check_login(with_rehearsal))
    asyncio.run(check_login(PLAINTEXT))
    assert rehearsed == [True]


def test_a_lone_broker_needs_none() -> None:
    assert secured("SASL_PLAINTEXT", {"zookeeper.connect": ""}) == PLAINTEXT
    assert secured("PLAINTEXT", {}) == PLAINTEXT


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, f"{OWN} must name a user"),
        ({OWN: f'{JAAS} user_b="s";'}, f"{OWN} must name a user"),
        (
            {"sasl.mechanism.inter.broker.protocol": "DIGEST-MD5"},
            "sasl.mechanism.inter.broker.protocol=DIGEST-MD5 is not served; served are PLAIN",
        ),
        (
            {
                "sasl.mechanism.inter.broker.protocol": "GSSAPI",
                "sasl.enabled.mechanisms": "GSSAPI",
            },
            "listener.name.x.gssapi.sasl.jaas.config must be a line of Krb5LoginModule",
        ),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-256"},
            "sasl.mechanism.inter.broker.protocol=PLAIN must be one of"
            " sasl.enabled.mechanisms=SCRAM-SHA-256",
        ),
    ],
)
def test_what_cannot_be_done(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        secured("SASL_PLAINTEXT", given)
    assert str(refused.value).startswith(f"inter-broker listener X (SASL_PLAINTEXT): {said}")

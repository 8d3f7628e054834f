"""The security of each listener, and one clear line for a config that gives none."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.security.listener_security import ListenerSecurity, listener_security
from kafkapy.server.security.oauth import OAuth
from kafkapy.server.security.scram_credentials import ScramCredentials
from tests.harness.cores.ports import ManualClock, SeededRandom
from tests.harness.security.certificates import can_make, make_identity

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
NOT_SERVED = "served are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI"


def secured(protocol: str, **more: str) -> ListenerSecurity:
    """The security of a listener X beside a plain one; `_` stands for a dot."""
    given = {key.replace("_", "."): value for key, value in more.items()}
    config = KafkaConfig(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,X://127.0.0.1:0",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,X:{protocol}",
            **given,
        }
    )
    return security_of(config, 1)


def security_of(config: KafkaConfig, index: int) -> ListenerSecurity:
    listener, oauth = config.listeners[index], OAuth(ManualClock(), SeededRandom(1))
    return listener_security(config, listener, ScramCredentials(), SeededRandom(1), oauth)


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> str | None:
    if not can_make("TLS listeners' properties"):
        return None
    return str(make_identity(tmp_path_factory.mktemp("tls"), "broker"))


def test_sasl_mechanisms_have_their_own_settings() -> None:
    found = secured(
        "SASL_PLAINTEXT",
        sasl_enabled_mechanisms="SCRAM-SHA-512,PLAIN",
        listener_name_x_plain_sasl_jaas_config=JAAS,
        connections_max_reauth_ms="1000",
        listener_name_x_plain_connections_max_reauth_ms="2000",
        connection_failed_authentication_delay_ms="250",
    )
    assert (found.tls, found.sasl is None) == (None, False)
    assert found.sasl is not None
    limits = {name: mechanism.session_max_ms for name, mechanism in found.sasl.mechanisms.items()}
    assert limits == {"SCRAM-SHA-512": 1000, "PLAIN": 2000}
    assert (found.sasl.receive_bytes_max, found.sasl.failure_delay_s) == (524288, 0.25)
    plain = found.sasl.mechanisms["PLAIN"].begin()
    assert plain.evaluate(b"\0alice\0secret") == b""


def test_every_scram_login_has_a_nonce_of_its_own() -> None:
    found = secured("SASL_PLAINTEXT", sasl_enabled_mechanisms="SCRAM-SHA-256")
    assert found.sasl is not None
    begin = found.sasl.mechanisms["SCRAM-SHA-256"].begin
    assert begin() is not begin()


@pytest.mark.parametrize("key", ["listener_name_x_sasl_jaas_config", "sasl_jaas_config"])
def test_the_users_of_plain_may_stand_less_deep(key: str) -> None:
    assert secured("SASL_PLAINTEXT", sasl_enabled_mechanisms="PLAIN", **{key: JAAS}).sasl


def test_a_jaas_file_names_users_and_wins_over_what_kafka_reads_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(
        f"x.KafkaServer {{ {JAAS} }}; KafkaServer {{ {JAAS.replace('alice', 'bob')} }};"
    )
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0,X://127.0.0.1:0,Y://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,X:SASL_PLAINTEXT,Y:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": JAAS.replace("alice", "carol"),
        "kafkapy.java.security.auth.login.config": str(file),
    }
    for index, user in (1, b"alice"), (2, b"bob"):
        found = security_of(KafkaConfig(given), index).sasl
        assert found is not None
        assert found.mechanisms["PLAIN"].begin().evaluate(b"\0%b\0secret" % user) == b""
    assert "sasl.jaas.config should be prefixed with SASL mechanism name, ignoring" in caplog.text
    file.write_text("KafkaServer { a.PlainLoginModule required; };")
    with pytest.raises(
        ConfigError, match=r"/jaas\.conf, KafkaServer: sasl\.jaas\.config must name"
    ):
        security_of(KafkaConfig(given), 1)


def test_plain_needs_users() -> None:
    with pytest.raises(ConfigError) as refused:
        secured("SASL_PLAINTEXT", sasl_enabled_mechanisms="PLAIN")
    assert str(refused.value).startswith(
        "listener X (SASL_PLAINTEXT): listener.name.x.plain.sasl.jaas.config must name the users"
    )


KAFKAS = "org.apache.kafka.common.security"
HANDLERS = {
    "PLAIN": f"{KAFKAS}.plain.internals.PlainServerCallbackHandler",
    "SCRAM-SHA-256": f"{KAFKAS}.scram.internals.ScramServerCallbackHandler",
    "SCRAM-SHA-512": f"{KAFKAS}.scram.internals.ScramServerCallbackHandler",
}


@pytest.mark.parametrize("mechanism", HANDLERS)
@pytest.mark.parametrize("kind", ["server", "login"])
@pytest.mark.parametrize("prefix", ["", "listener_name_x_", "listener_name_x_{}_"])
def test_a_custom_callback_handler_is_refused(mechanism: str, kind: str, prefix: str) -> None:
    """It was ignored: users of the JAAS entry could log in that an LDAP handler would refuse."""
    key = f"{prefix.format(mechanism.lower())}sasl_{kind}_callback_handler_class"
    given = {"sasl_enabled_mechanisms": mechanism, "sasl_jaas_config": JAAS}
    with pytest.raises(ConfigError, match=r"=com\.acme\.Ldap: Java classes cannot be loaded; all"):
        secured("SASL_PLAINTEXT", **given, **{key: "com.acme.Ldap"})
    assert secured("SASL_PLAINTEXT", **given, **{key: ""}).sasl


@pytest.mark.parametrize("mechanism", HANDLERS)
def test_kafkas_callback_handlers_are_accepted(mechanism: str) -> None:
    given = {"sasl_enabled_mechanisms": mechanism, "sasl_jaas_config": JAAS}
    own = f"listener_name_x_{mechanism.lower()}_sasl_server_callback_handler_class"
    assert secured("SASL_PLAINTEXT", **given, **{own: HANDLERS[mechanism]}).sasl
    validator = f"{KAFKAS}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    for_another = {"sasl_server_callback_handler_class": validator}
    assert secured("SASL_PLAINTEXT", **given, **for_another).sasl
    with pytest.raises(ConfigError, match=f"allowed for {mechanism} is {HANDLERS[mechanism]}$"):
        secured("SASL_PLAINTEXT", **given, **{own: validator})


def test_a_mechanism_that_is_not_served() -> None:
    with pytest.raises(ConfigError) as refused:
        secured("SASL_PLAINTEXT", sasl_enabled_mechanisms="DIGEST-MD5")
    assert str(refused.value) == (
        f"listener X (SASL_PLAINTEXT): sasl.enabled.mechanisms=DIGEST-MD5: {NOT_SERVED}"
    )


def test_kafkas_default_mechanism_needs_a_key() -> None:
    with pytest.raises(ConfigError) as refused:
        secured("SASL_PLAINTEXT")
    assert str(refused.value).startswith(
        "listener X (SASL_PLAINTEXT): listener.name.x.gssapi.sasl.jaas.config must be a line of"
        " Krb5LoginModule for GSSAPI"
    )


def test_what_is_not_served_beside_others_is_told(caplog: pytest.LogCaptureFixture) -> None:
    found = secured(
        "SASL_PLAINTEXT", listener_name_x_sasl_enabled_mechanisms="DIGEST-MD5,SCRAM-SHA-256"
    )
    assert found.sasl is not None
    assert list(found.sasl.mechanisms) == ["SCRAM-SHA-256"]
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().endswith(
        f"listener.name.x.sasl.enabled.mechanisms=DIGEST-MD5,SCRAM-SHA-256: {NOT_SERVED}"
    )


@pytest.mark.parametrize(
    ("protocol", "key", "mode"),
    [
        ("SSL", "ssl_client_auth", ssl.CERT_REQUIRED),
        ("SSL", "listener_name_x_ssl_client_auth", ssl.CERT_REQUIRED),
        ("SASL_SSL", "ssl_client_auth", ssl.CERT_NONE),
        ("SASL_SSL", "listener_name_x_ssl_client_auth", ssl.CERT_REQUIRED),
    ],
)
def test_client_auth(identity: str | None, protocol: str, key: str, mode: ssl.VerifyMode) -> None:
    if identity is None:
        return
    found = secured(
        protocol,
        sasl_enabled_mechanisms="SCRAM-SHA-256",
        ssl_keystore_location=identity,
        **{key: "required"},
    )
    assert found.tls is not None
    assert found.tls.accept_context().verify_mode is mode


def test_how_users_are_named(identity: str | None) -> None:
    if identity is None:
        return
    rules = {"listener_name_x_ssl_principal_mapping_rules": "RULE:^CN=(.*)$/$1/U"}
    found = secured("SSL", ssl_keystore_location=identity, **rules)
    assert found.principals.name_of("CN=alice") == "ALICE"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "a TLS listener needs a certificate: set ssl.keystore.location"),
        (
            {"listener_name_x_ssl_client_auth": "maybe"},
            "listener.name.x.ssl.client.auth=maybe: allowed are none, requested, required",
        ),
        ({"ssl_principal_mapping_rules": "x"}, "ssl.principal.mapping.rules=x is not a list"),
        ({"ssl_keystore_location": "k.jks"}, "ssl.keystore.location=k.jks cannot be used: No"),
        ({"ssl_keystore_location": "/no.pem"}, "ssl.keystore.location=/no.pem cannot be used: No"),
    ],
)
def test_what_cannot_be_served(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        secured("SSL", **given)
    assert str(refused.value).startswith(f"listener X (SSL): {said}")


@pytest.mark.parametrize("wrong", ["soon", "--5", str(2**63)])
def test_a_session_limit_that_is_no_number(wrong: str) -> None:
    limit = {"listener_name_x_connections_max_reauth_ms": wrong}
    said = rf"listener\.name\.x\.connections\.max\.reauth\.ms={wrong} is not"
    with pytest.raises(ConfigError, match=said):
        secured("SASL_PLAINTEXT", sasl_enabled_mechanisms="SCRAM-SHA-256", **limit)


def test_a_plain_listener_reads_no_store(tmp_path: Path) -> None:
    config = KafkaConfig({"ssl.keystore.location": str(tmp_path / "missing.jks")})
    found = security_of(config, 0)
    assert (found.tls, found.sasl) == (None, None)

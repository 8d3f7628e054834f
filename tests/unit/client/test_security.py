"""Security properties: what is allowed, what is refused and how that is said."""

import ssl
from pathlib import Path

import pytest

from kafkapy.client.librdkafka import producer_config
from kafkapy.client.security import security_from, ssl_context, store_of
from kafkapy.common.errors import ConfigError
from kafkapy.security.sasl.jaas import Credentials

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a b" {};'


def test_plaintext_is_the_default() -> None:
    security = security_from({})
    assert (security.protocol, security.encrypted, security.sasl) == ("PLAINTEXT", False, False)


@pytest.mark.parametrize(
    ("protocol", "encrypted", "sasl"),
    [("ssl", True, False), ("SASL_SSL", True, True), ("sasl_plaintext", False, True)],
)
def test_protocols(protocol: str, encrypted: bool, sasl: bool) -> None:
    security = security_from({"security.protocol": protocol})
    assert (security.encrypted, security.sasl) == (encrypted, sasl)


def test_an_unknown_protocol_is_named_with_what_is_allowed() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value TLS .*security\.protocol.*SASL_SSL"):
        security_from({"security.protocol": "tls"})


@pytest.mark.parametrize(
    ("option", "password"),
    [
        ('password="p;w"', "p;w"),
        ("password=plain", "plain"),
        (r'password="q\"\\"', 'q"\\'),
    ],
)
def test_jaas(option: str, password: str) -> None:
    security = security_from({"sasl.jaas.config": JAAS.format(option)})
    assert security.credentials() == Credentials("a b", password)


def test_jaas_without_a_user_shows_how() -> None:
    with pytest.raises(ConfigError, match="PlainLoginModule required"):
        security_from({}).credentials()


def test_pem_stores_by_type_or_name() -> None:
    by_type = store_of(
        {"ssl.truststore.location": "/x", "ssl.truststore.type": "pem"}, "truststore"
    )
    by_name = store_of({"ssl.keystore.location": "/x.pem"}, "keystore")
    assert by_type is not None
    assert by_name is not None
    assert (by_type.source.location, by_type.converted) == ("/x", None)
    assert (by_name.source.location, by_name.converted) == ("/x.pem", None)
    assert store_of({}, "keystore") is None


def test_host_names_are_checked_unless_told_otherwise() -> None:
    assert ssl_context({}).check_hostname
    assert ssl_context({}).verify_mode is ssl.CERT_REQUIRED
    assert not ssl_context({"ssl.endpoint.identification.algorithm": ""}).check_hostname


def test_an_unusable_store_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("nothing")
    for location in (tmp_path / "bad.pem", tmp_path / "missing.pem"):
        with pytest.raises(ConfigError, match=r"ssl\.truststore\.location=.* cannot be used"):
            ssl_context({"ssl.truststore.location": str(location)})


def test_the_jaas_file_of_kafka_opts_says_who_logs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(f"KafkaClient {{ {JAAS.format('password=p')} }};")
    monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={file}")
    sasl = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    assert security_from(sasl).credentials() == Credentials("a b", "p")
    config = producer_config(sasl)
    assert (config["sasl.username"], config["sasl.password"]) == ("a b", "p")
    assert not any(name.startswith("kafkapy.") for name in config)
    own = {**sasl, "sasl.jaas.config": JAAS.format("password=own")}
    assert security_from(own).credentials() == Credentials("a b", "own")
    assert "sasl.jaas.config" not in security_from({}).properties


def test_blanks_at_the_end_of_a_line_are_no_part_of_a_value() -> None:
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" '
    given = {
        "security.protocol": "SASL_PLAINTEXT ",
        "sasl.mechanism": "PLAIN\t",
        "sasl.jaas.config": f'{login} password="p"; ',
    }
    security = security_from(given)
    assert (security.protocol, security.sasl_mechanism) == ("SASL_PLAINTEXT", "PLAIN")
    assert security.credentials().username == "u"

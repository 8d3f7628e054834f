"""The `zookeeper.*` keys: what they mean and how wrong ones are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.zk.kazoo.client_config import (
    AUTH,
    SASL_LOGIN,
    SaslLogin,
    ZooKeeperClientConfig,
    parse_connect,
)

DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule"
TLS = {"zookeeper.ssl.client.enable": "true"}


def config(**settings: str) -> ZooKeeperClientConfig:
    return read({f"zookeeper.{k.replace('_', '.')}": v for k, v in settings.items()})


def read(properties: dict[str, str]) -> ZooKeeperClientConfig:
    return ZooKeeperClientConfig.from_properties({"zookeeper.connect": "h"} | properties)


def test_defaults_are_kafkas() -> None:
    made = config()
    assert (made.hosts, made.chroot) == (("h:2181",), "")
    assert made.session_timeout_ms == made.connection_timeout_ms == 18_000
    assert made.max_in_flight_requests == 10
    assert not made.set_acl
    assert made.tls is made.sasl is made.auth is None


def test_the_connection_timeout_follows_the_session_timeout() -> None:
    assert config(session_timeout_ms="6000").connection_timeout_ms == 6000
    both = config(session_timeout_ms="6000", connection_timeout_ms="9000")
    assert (both.session_timeout_ms, both.connection_timeout_ms) == (6000, 9000)


@pytest.mark.parametrize(
    ("text", "hosts", "chroot"),
    [
        ("h1", ("h1:2181",), ""),
        ("h1:1,h2:2", ("h1:1", "h2:2"), ""),
        (" h1:1 , h2 /a ", ("h1:1", "h2:2181"), "/a"),
        ("[::1]:1,127.0.0.1/a/b", ("[::1]:1", "127.0.0.1:2181"), "/a/b"),
        ("h1/", ("h1:2181",), ""),
        ("h1/a/", ("h1:2181",), "/a"),
    ],
)
def test_connect_strings(text: str, hosts: tuple[str, ...], chroot: str) -> None:
    assert parse_connect(text) == (hosts, chroot)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' is not host:port"),
        ("h1,,h2", "'' is not host:port"),
        ("h1:x", "'h1:x' is not host:port"),
        ("h1:99999", "'h1:99999' is not host:port"),
        ("/a", "'' is not host:port"),
        ("h1//a", "'//a' is not a znode path"),
        ("h1/a/../b", "'/a/../b' is not a znode path"),
    ],
)
def test_wrong_connect_strings_are_told(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper.connect") as refused:
        parse_connect(text)
    assert said in str(refused.value)


def test_tls_is_read() -> None:
    made = read(
        TLS
        | {
            "zookeeper.ssl.keystore.location": "/k",
            "zookeeper.ssl.keystore.type": "PEM",
            "zookeeper.ssl.keystore.password": "p",
            "zookeeper.ssl.truststore.location": "/t.pem",
            "zookeeper.ssl.cipher.suites": "A,B",
            "zookeeper.ssl.crl.enable": "true",
        }
    ).tls
    assert made is not None
    names = ("keystore.location", "keystore.type", "key.password", "truststore.location")
    assert [made.stores.get(f"ssl.{name}") for name in names] == ["/k", "PEM", "p", "/t.pem"]
    assert made.stores.key("ssl.keystore.location") == "zookeeper.ssl.keystore.location"
    assert made.versions == ("TLSv1.2", "TLSv1.3")
    assert made.ciphers == ("A", "B")
    assert made.verify_host
    assert made.check_revocation


def test_tls_versions_and_host_verification_can_be_narrowed() -> None:
    made = read(
        TLS
        | {
            "zookeeper.ssl.protocol": "TLSv1.3",
            "zookeeper.ssl.endpoint.identification.algorithm": "",
        }
    ).tls
    assert made is not None
    assert made.versions == ("TLSv1.3",)
    assert not made.verify_host


def test_stores_without_tls_mean_nothing() -> None:
    assert config(ssl_keystore_location="/k.jks").tls is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"zookeeper.ssl.ocsp.enable": "true"}, "ocsp"),
        ({"zookeeper.ssl.enabled.protocols": "SSLv3"}, "TLSv1.2, TLSv1.3"),
        ({"zookeeper.ssl.protocol": "TLS"}, "zookeeper.ssl.protocol"),
        ({"zookeeper.ssl.endpoint.identification.algorithm": "LDAPS"}, "HTTPS or empty"),
    ],
)
def test_wrong_tls_is_told(changes: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(TLS | changes)
    assert said in str(refused.value)


def test_the_class_of_javas_client_socket_is_checked_and_says_nothing() -> None:
    netty = "org.apache.zookeeper.ClientCnxnSocketNetty"
    assert read(TLS | {"zookeeper.clientCnxnSocket": netty}) == read(TLS)
    with pytest.raises(ConfigError, match=r"zookeeper\.clientCnxnSocket: a Java class"):
        read(TLS | {"zookeeper.clientCnxnSocket": "com.example.Socket"})


def test_a_login_is_read() -> None:
    line = f'{DIGEST} required username="kaf\\"ka" password="se;cret" ;'
    assert read({SASL_LOGIN: line}).sasl == SaslLogin('kaf"ka', "se;cret")
    assert read({AUTH: "digest:kafka:a:b"}).auth == ("digest", "kafka:a:b")


@pytest.mark.parametrize(
    "line", ["", "x", f'{DIGEST} required username="a";', 'Krb5LoginModule required useKeyTab="t";']
)
def test_a_wrong_login_is_told_how_to_be_right(line: str) -> None:
    with pytest.raises(
        ConfigError, match=r'must read: .*DigestLoginModule required username="NAME"'
    ):
        read({SASL_LOGIN: line})


def test_a_wrong_auth_is_told() -> None:
    with pytest.raises(ConfigError, match="scheme:credential"):
        read({AUTH: "digest"})


def test_acls_need_an_identity() -> None:
    acl = {"zookeeper.set.acl": "true"}
    with pytest.raises(ConfigError, match=r"zookeeper.set.acl=true needs an identity"):
        read(acl)
    with pytest.raises(ConfigError, match=r"zookeeper.set.acl=true needs an identity"):
        read(acl | TLS)
    assert read(acl | TLS | {"zookeeper.ssl.keystore.location": "/k.pem"}).set_acl
    assert read(acl | {AUTH: "digest:a:b"}).set_acl
    assert read(acl | {SASL_LOGIN: f'{DIGEST} required username="a" password="b";'}).set_acl


def test_numbers_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"zookeeper.max.in.flight.requests"):
        config(max_in_flight_requests="0")


def test_the_section_for_zookeeper_of_a_jaas_file(tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    digest = "org.apache.zookeeper.server.auth.DigestLoginModule required"
    file.write_text(
        f'Client {{ {digest} username="kafka" password="zk"; }};'
        f' Other {{ {digest} username="other" password="zk"; }};'
        " Kerberos { com.sun.security.auth.module.Krb5LoginModule required; };"
    )
    given = {"zookeeper.connect": "h", "kafkapy.java.security.auth.login.config": str(file)}

    def login(**more: str) -> SaslLogin | None:
        properties = given | {f"kafkapy.zookeeper.sasl.{k}": text for k, text in more.items()}
        return ZooKeeperClientConfig.from_properties(properties).sasl

    assert login() == SaslLogin("kafka", "zk")
    assert login(clientconfig="Other") == SaslLogin("other", "zk")
    assert login(clientconfig="None") is login(clientconfig="") is None
    line = {"kafkapy.zookeeper.sasl.jaas.config": f'{digest} username="line" password="zk";'}
    properties = {**given, **line, "zookeeper.set.acl": "true"}
    assert ZooKeeperClientConfig.from_properties(properties).sasl == SaslLogin("line", "zk")
    with pytest.raises(ConfigError, match="the section Kerberos, for ZooKeeper, must have"):
        login(clientconfig="Kerberos")

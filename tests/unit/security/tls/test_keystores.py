"""Java's stores give their keys and certificates, whoever wrote them; others are refused."""

from __future__ import annotations

import builtins
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties, of_listener
from kafkapy.security.tls import keystores
from kafkapy.security.tls.keystores import StoreSource
from kafkapy.security.tls.stores import client_context, server_context
from kafkapy.server.security.tls_check import check_handshake
from tests.harness.security.certificates import (
    JavaAuthority,
    can_keytool,
    can_make,
    keytool,
    make_authority,
    make_identity,
    make_pkcs12,
    make_pkcs12_of,
)

# What keytool wrote before Java 8u301 and 16, and openssl before 3: RC2-40 and 3DES.
OLD = ("-legacy", "-keypbe", "PBE-SHA1-3DES", "-certpbe", "PBE-SHA1-RC2-40", "-macalg", "sha1")
KEYTOOL_OLD = "-J-Dkeystore.pkcs12.legacy"
SOURCE = StoreSource("ssl.keystore.location", "/k.jks", "ssl.keystore.password")


@pytest.fixture
def identity(tmp_path: Path) -> Path | None:
    return make_identity(tmp_path, "broker") if can_make("PKCS12 stores") else None


def stores(own: Path | None, trusted: Path, password: str = "secret") -> PrefixedProperties:
    given = {"ssl.truststore.location": str(trusted), "ssl.truststore.password": password}
    if own is not None:
        given |= {"ssl.keystore.location": str(own), "ssl.keystore.password": password}
    return PrefixedProperties(given)


def certificates(text: str) -> list[bytes]:
    end = "-----END CERTIFICATE-----\n"
    return [ssl.PEM_cert_to_DER_cert(part + end) for part in text.split(end)[:-1]]


@pytest.mark.parametrize("more", [(), OLD], ids=["new", "old"])
def test_what_openssl_writes(identity: Path | None, more: tuple[str, ...]) -> None:
    if identity is None:
        return
    own = make_pkcs12(identity, "secret", *more)
    trusted = make_pkcs12_of(identity, "secret", *more)
    assert server_context(stores(own, trusted), "required").cert_store_stats()["x509"] == 1
    found = keystores.keystore(own.read_bytes(), "secret", SOURCE)
    assert found.key == identity.with_suffix(".key").read_text()
    assert found.certificates == identity.with_suffix(".crt").read_text()


@pytest.mark.parametrize("more", [(), (KEYTOOL_OLD,)], ids=["new", "old"])
def test_what_keytool_writes(identity: Path | None, tmp_path: Path, more: tuple[str, ...]) -> None:
    if identity is None or not can_keytool("stores by keytool"):
        return
    own, trusted = tmp_path / "kafka.keystore.jks", tmp_path / "kafka.truststore.jks"
    keytool(own, *more, "-genkeypair", "-alias", "broker", "-keyalg", "EC", "-dname", "CN=x")
    for alias in ("one", "two"):
        file = ("-file", str(identity.with_suffix(".crt")))
        keytool(trusted, *more, "-importcert", "-noprompt", "-alias", alias, *file)
    assert client_context(stores(own, trusted)).cert_store_stats()["x509"] == 1  # twice the same
    text = keystores.truststore(trusted.read_bytes(), "secret", SOURCE).certificates
    expected = ssl.PEM_cert_to_DER_cert(identity.with_suffix(".crt").read_text())
    assert certificates(text) == [expected, expected]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> JavaAuthority | None:
    """Signs with SHA-1, as was usual when stores were JKS."""
    if not can_keytool("JKS stores, and chains signed with SHA-1"):
        return None
    return JavaAuthority(tmp_path_factory.mktemp("java"), "JKS", "SHA1withRSA")


@pytest.fixture(scope="module")
def old(java: JavaAuthority | None) -> Path | None:
    return None if java is None else java.keystore("broker", "localhost")


def test_what_keytool_wrote_before_java_9(java: JavaAuthority | None, old: Path | None) -> None:
    """A key with its chain, and who is believed; no property says that they are JKS."""
    if java is None or old is None:
        return
    found = keystores.keystore(old.read_bytes(), "secret", SOURCE)
    chain = [java.certificate("broker"), java.certificate("ca")]
    assert certificates(found.certificates) == chain
    text = keystores.truststore(java.truststore().read_bytes(), "secret", SOURCE).certificates
    assert certificates(text) == [java.certificate("ca")]


def test_chains_signed_with_sha_1(
    java: JavaAuthority | None, old: Path | None, caplog: pytest.LogCaptureFixture
) -> None:
    """OpenSSL refuses them. Kafka takes them, as do we where it is allowed."""
    if java is None or old is None:
        return
    given = stores(old, java.truststore()).properties
    given = {**given, "ssl.endpoint.identification.algorithm": ""}
    with pytest.raises(ConfigError) as refused:
        server_context(PrefixedProperties(given), "none")
    assert str(refused.value).endswith(
        "a certificate is signed with SHA-1, or its key is below 2048 bits. Issue it anew, or"
        " accept it, as Java does: kafkapy.ssl.allow.sha1=true"
    )
    allowing = PrefixedProperties({**given, "kafkapy.ssl.allow.sha1": "true"})
    server = server_context(allowing, "required")
    trusting = {k: v for k, v in given.items() if "keystore" not in k}
    with pytest.raises(ssl.SSLError, match="too weak"):
        check_handshake(
            client_context(PrefixedProperties(trusting)), server_context(allowing, "none")
        )
    check_handshake(client_context(allowing), server)
    assert "kafkapy.ssl.allow.sha1=true: certificates signed with SHA-1" in caplog.text
    names = {c["name"] for c in server.get_ciphers()}
    assert names == {c["name"] for c in ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).get_ciphers()}


@pytest.mark.parametrize("store_type", ["JKS", "JCEKS"])
def test_a_key_has_a_password_of_its_own(tmp_path: Path, store_type: str) -> None:
    if not can_keytool("passwords of keys in JKS stores"):
        return
    store = tmp_path / "own.jks"
    words = ("-genkeypair", "-alias", "a", "-keyalg", "EC", "-dname", "CN=x")
    keytool(store, *words, "-storetype", store_type, "-keypass", "its own")
    own = {"ssl.keystore.location": str(store), "ssl.keystore.password": "secret"}
    server_context(PrefixedProperties({**own, "ssl.key.password": "its own"}), "none")
    for given, blamed in (
        (own, "ssl.keystore.password"),
        ({**own, "ssl.key.password": "wrong"}, "ssl.key.password"),
    ):
        with pytest.raises(ConfigError, match=rf"{blamed} does not open its key a$"):
            server_context(PrefixedProperties(given), "none")
    with pytest.raises(ConfigError, match="it holds no certificate"):
        keystores.truststore(store.read_bytes(), "secret", SOURCE)


def test_a_wrong_password_that_leaves_valid_padding_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JCEKS: one wrong password in 256 does."""
    if not can_keytool("passwords of keys in JKS stores"):
        return
    store = tmp_path / "own.jks"
    words = ("-genkeypair", "-alias", "a", "-keyalg", "EC", "-dname", "CN=x")
    keytool(store, *words, "-storetype", "JCEKS")
    monkeypatch.setattr("jks.jks.sun_crypto.jce_pbe_decrypt", lambda *_: b"\x04\xf0none")
    given = {"ssl.keystore.location": str(store), "ssl.keystore.password": "secret"}
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.password does not open its key a$"):
        server_context(PrefixedProperties(given), "none")


def test_a_jks_truststore_needs_no_password(java: JavaAuthority | None) -> None:
    """Java does not ask for one either: the certificates are not encrypted."""
    if java is None:
        return
    given = {"ssl.truststore.location": str(java.truststore())}
    assert client_context(PrefixedProperties(given)).cert_store_stats()["x509"] == 1
    with pytest.raises(ConfigError, match=r"no JKS store, or ssl.truststore.password does not"):
        client_context(PrefixedProperties({**given, "ssl.truststore.password": "wrong"}))
    with pytest.raises(ConfigError, match="it holds no private key"):
        keystores.keystore(java.truststore().read_bytes(), "secret", SOURCE)


def test_a_broken_jks_store_is_named(tmp_path: Path) -> None:
    store = tmp_path / "old.jks"
    given = {"listener.name.x.ssl.keystore.location": str(store)}
    for data in ("feedfeed00000002", "feedfeed0000000200000001000000070001", "cececece00000009"):
        store.write_bytes(bytes.fromhex(data))
        with pytest.raises(ConfigError) as refused:
            server_context(of_listener(given, "X"), "none")
        assert str(refused.value) == (
            f"listener.name.x.ssl.keystore.location={store} cannot be used: it is no JKS store, or"
            " ssl.keystore.password does not open it"
        )


def test_damage_in_a_secret_key_is_named(tmp_path: Path) -> None:
    """JCEKS has a serialized object of Java's for one, where damage is found in many ways."""
    if not can_keytool("secret keys in JCEKS stores"):
        return
    store = tmp_path / "own.jks"
    words = ("-genseckey", "-alias", "s", "-keyalg", "AES", "-keysize", "128")
    keytool(store, *words, "-storetype", "JCEKS")
    data = store.read_bytes()
    for size in range(12, len(data) - 20, 7):
        with pytest.raises(ConfigError, match=r"it (is no JKS store|holds no certificate)"):
            keystores.truststore(data[:size], None, SOURCE)


@pytest.mark.parametrize("password", ["", "wrong"])
@pytest.mark.parametrize("kind", ["keystore", "truststore"])
def test_a_password_that_does_not_open_it(identity: Path | None, kind: str, password: str) -> None:
    if identity is None:
        return
    store = make_pkcs12(identity, "secret")
    given = {f"ssl.{kind}.location": str(store), f"ssl.{kind}.password": password}
    with pytest.raises(ConfigError) as refused:
        client_context(PrefixedProperties(given))
    assert str(refused.value) == (
        f"ssl.{kind}.location={store} cannot be used: it is no PKCS12 store, or"
        f" ssl.{kind}.password does not open it"
    )


def test_a_store_without_what_is_wanted(identity: Path | None) -> None:
    if identity is None:
        return
    trusted = make_pkcs12_of(identity, "secret").read_bytes()
    with pytest.raises(ConfigError, match=r"/k\.jks cannot be used: it holds no private key"):
        keystores.keystore(trusted, "secret", SOURCE)
    broken = b"0" + trusted[1:40]
    with pytest.raises(ConfigError, match="it is no PKCS12 store"):
        keystores.truststore(broken, "secret", SOURCE)


def test_the_issuers_follow_in_order(tmp_path: Path) -> None:
    """TLS sends them from the certificate up; a store has them in any order."""
    if not can_make("chains in PKCS12 stores"):
        return

    make_authority(tmp_path, "root")
    make_authority(tmp_path, "middle", "root")
    make_authority(tmp_path, "leaf", "middle")
    texts = {n: (tmp_path / f"{n}.crt").read_text() for n in ("leaf", "middle", "root")}
    (tmp_path / "others.crt").write_text(texts["root"] + texts["middle"])
    leaf = tmp_path / "leaf.pem"
    leaf.write_text((tmp_path / "leaf.key").read_text() + texts["leaf"])
    store = make_pkcs12(leaf, "secret", "-certfile", str(tmp_path / "others.crt"))
    found = keystores.keystore(store.read_bytes(), "secret", SOURCE)
    assert certificates(found.certificates) == [
        ssl.PEM_cert_to_DER_cert(texts[n]) for n in ("leaf", "middle", "root")
    ]


def test_pem_under_another_name_is_pem(identity: Path | None) -> None:
    if identity is None:
        return
    store = identity.rename(identity.with_suffix(".store"))
    assert server_context(stores(store, store), "none").cert_store_stats()["x509"] == 1


def test_the_missing_package_of_jks_stores_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "old.jks"
    store.write_bytes(bytes.fromhex("feedfeed00000002"))
    monkeypatch.setitem(sys.modules, "jks", None)
    with pytest.raises(ConfigError) as refused:
        client_context(stores(None, store))
    assert str(refused.value) == (
        f"ssl.truststore.location={store} cannot be used: a JKS store needs the package"
        " purejks: pip install purejks. Or convert it: keytool -importkeystore -srckeystore"
        f" {store} -destkeystore store.p12 -deststoretype PKCS12"
    )


def test_the_missing_package_of_pkcs12_stores_is_named(
    identity: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if identity is None:
        return
    real = builtins.__import__

    def missing(name: str, *args: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return real(name, *args)

    store = make_pkcs12_of(identity, "secret")
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ConfigError) as refused:
        client_context(stores(None, store))
    assert str(refused.value) == (
        f"ssl.truststore.location={store} cannot be used: a PKCS12 store needs the package"
        " cryptography: pip install cryptography. Or convert it: openssl pkcs12"
        f" -in {store} -nokeys -out store.pem"
    )

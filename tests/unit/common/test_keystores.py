"""Java's stores give their keys and certificates, whoever wrote them; others are refused."""

from __future__ import annotations

import builtins
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common import keystores
from kafkapy.common.errors import ConfigError
from kafkapy.common.keystores import StoreSource
from kafkapy.common.prefixed_properties import PrefixedProperties, of_listener
from kafkapy.common.tls_stores import client_context, server_context
from tests.support.certificates import (
    can_keytool,
    can_make,
    keytool,
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


def test_a_jks_store_of_old_is_refused_with_the_conversion(tmp_path: Path) -> None:
    store = tmp_path / "old.jks"
    store.write_bytes(bytes.fromhex("feedfeed00000002"))
    given = {"listener.name.x.ssl.keystore.location": str(store)}
    with pytest.raises(ConfigError) as refused:
        server_context(of_listener(given, "X"), "none")
    assert str(refused.value) == (
        f"listener.name.x.ssl.keystore.location={store} cannot be used: it is a JKS store of before"
        f" Java 9. Convert it: keytool -importkeystore -srckeystore {store} -destkeystore store.p12"
        " -deststoretype PKCS12"
    )


def test_a_real_jks_store_is_known_as_such(tmp_path: Path) -> None:
    if not can_keytool("real JKS stores"):
        return
    store = tmp_path / "real.jks"
    words = ("-genkeypair", "-alias", "a", "-keyalg", "EC", "-dname", "CN=x")
    keytool(store, *words, "-storetype", "JKS")
    with pytest.raises(ConfigError, match="-deststoretype PKCS12"):
        keystores.keystore(store.read_bytes(), "secret", SOURCE)


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

    def sign(name: str, issuer: str | None) -> None:
        ca = ("-addext", "basicConstraints=critical,CA:TRUE")
        by = () if issuer is None else ("-CA", f"{issuer}.crt", "-CAkey", f"{issuer}.key")
        command = [
            *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-subj", f"/CN={name}", *ca),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", *by),
            *("-keyout", f"{name}.key", "-out", f"{name}.crt"),
        ]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)

    sign("root", None)
    sign("middle", "root")
    sign("leaf", "middle")
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


def test_without_the_package_the_extra_is_named(
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
        f"ssl.truststore.location={store} cannot be used: PKCS12 stores are read by an extra: pip"
        f" install 'kafkapy[keystores]'. Or convert it: openssl pkcs12 -in {store} -nokeys -out"
        " store.pem"
    )

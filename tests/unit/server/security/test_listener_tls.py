"""Stores that are read again: new ones serve from then on, what must not be leaves the old."""

from __future__ import annotations

import os
import shutil
import ssl
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.config.listeners import Listener
from kafkapy.server.security.listener_tls import ListenerTls
from kafkapy.server.security.tls_check import certificate_of
from tests.harness.security.certificates import can_make, make_identity

LISTENER = Listener("X", "127.0.0.1", 0, "SSL")
KEYSTORE = "listener.name.x.ssl.keystore.location"
TRUSTSTORE = "listener.name.x.ssl.truststore.location"
REFUSED = r"^listener X \(SSL\): "


class Identities:
    """Certificates of one name or of another, each its own authority."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._made = 0

    def make(self, name: str = "broker", host: str = "localhost") -> Path:
        self._made += 1
        where = self.directory / str(self._made)
        where.mkdir()
        return make_identity(where, name, host)


@pytest.fixture
def identities(tmp_path: Path) -> Identities | None:
    return Identities(tmp_path) if can_make("stores that are read again") else None


def shown(identity: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(identity.with_suffix(".crt").read_text())


def renew(tls: ListenerTls, configs: dict[str, str]) -> bool:
    """Whether there was something to renew."""
    stores = tls.read_if_changed(configs)
    if stores is not None:
        tls.replace(stores)
    return stores is not None


def served(tls: ListenerTls) -> bytes:
    return certificate_of(tls.accept_context())


def test_another_file_serves_until_the_config_goes(identities: Identities | None) -> None:
    if identities is None:
        return
    first, second = identities.make(), identities.make()
    tls = ListenerTls(LISTENER, {"ssl.keystore.location": str(first)})
    before = tls.accept_context()
    assert not renew(tls, {"listener.name.y.ssl.keystore.location": str(second)})
    assert renew(tls, {KEYSTORE: str(second)})
    assert (served(tls), certificate_of(before)) == (shown(second), shown(first))
    assert not renew(tls, {KEYSTORE: str(second)})
    assert renew(tls, {})
    assert served(tls) == shown(first)


def test_the_same_file_is_read_again_when_it_has_changed(identities: Identities | None) -> None:
    if identities is None:
        return
    store, second = identities.make(), identities.make()
    tls = ListenerTls(LISTENER, {"ssl.keystore.location": str(store)})
    times = store.stat()
    shutil.copy(second, store)
    os.utime(store, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    assert renew(tls, {})
    assert served(tls) == shown(second)
    store.unlink()
    assert not renew(tls, {})


def test_a_truststore_is_read_again_too(identities: Identities | None) -> None:
    if identities is None:
        return
    store, other = identities.make(), identities.make("client")
    given = {"ssl.keystore.location": str(store), "ssl.truststore.location": str(store)}
    tls = ListenerTls(LISTENER, given, "required")
    both = identities.directory / "both.crt"
    both.write_text(store.with_suffix(".crt").read_text() + other.with_suffix(".crt").read_text())
    assert renew(tls, {TRUSTSTORE: str(both)})
    assert tls.accept_context().verify_mode is ssl.CERT_REQUIRED
    assert tls.accept_context().cert_store_stats()["x509"] == 2


@pytest.mark.parametrize(
    "limits",
    [
        {"ssl.enabled.protocols": "TLSv1.2"},
        {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
    ],
)
def test_a_listener_of_tls_1_2_that_requires_client_certificates_starts(
    identities: Identities | None, limits: dict[str, str]
) -> None:
    if identities is None:
        return
    store = identities.make()
    given = {"ssl.keystore.location": str(store), "ssl.truststore.location": str(store), **limits}
    tls = ListenerTls(LISTENER, given, "required", connects=True)
    assert served(tls) == shown(store)
    assert tls.accept_context().verify_mode is ssl.CERT_REQUIRED
    assert renew(tls, {KEYSTORE: str(shutil.copy(store, store.with_name("copy.pem")))})


@pytest.mark.parametrize("key", [KEYSTORE, TRUSTSTORE])
@pytest.mark.parametrize("content", ["nothing", None])
def test_a_bad_store_is_named_and_the_old_one_stays(
    identities: Identities | None, key: str, content: str | None
) -> None:
    if identities is None:
        return
    store, bad = identities.make(), identities.directory / "bad.pem"
    if content is not None:
        bad.write_text(content)
    given = {"ssl.keystore.location": str(store), "ssl.truststore.location": str(store)}
    tls = ListenerTls(LISTENER, given)
    with pytest.raises(ConfigError, match=f"{REFUSED}{key}={bad} cannot be used: ") as refused:
        tls.read_if_changed({key: str(bad)})
    assert "\n" not in str(refused.value)
    assert served(tls) == shown(store)


@pytest.mark.parametrize(
    ("name", "host", "allow", "said"),
    [
        ("other", "localhost", "ssl.allow.dn.changes", "is a certificate of CN=other, and not of"),
        ("broker", "elsewhere", "ssl.allow.san.changes", "not for DNS:localhost any more"),
    ],
)
def test_who_it_is_for_stays_unless_allowed(
    identities: Identities | None, name: str, host: str, allow: str, said: str
) -> None:
    if identities is None:
        return
    first, second = identities.make(), identities.make(name, host)
    given = {"ssl.keystore.location": str(first)}
    with pytest.raises(ConfigError, match=f"{REFUSED}{KEYSTORE}={second}.* {said}") as refused:
        ListenerTls(LISTENER, given).read_if_changed({KEYSTORE: str(second)})
    assert f"{allow}=true" in str(refused.value)
    for key in (allow, f"listener.name.x.{allow}"):
        assert renew(ListenerTls(LISTENER, {**given, key: "true"}), {KEYSTORE: str(second)})


def test_a_truststore_cannot_be_added(identities: Identities | None) -> None:
    if identities is None:
        return
    store = identities.make()
    tls = ListenerTls(LISTENER, {"ssl.keystore.location": str(store)})
    with pytest.raises(ConfigError, match=f"{REFUSED}{TRUSTSTORE}={store} cannot be added"):
        tls.read_if_changed({TRUSTSTORE: str(store)})


def test_between_brokers_the_trust_comes_first(identities: Identities | None) -> None:
    """Each of the others has the old stores for a while, and must be reached meanwhile."""
    if identities is None:
        return
    first, second = identities.make(), identities.make()
    both = identities.directory / "both.crt"
    both.write_text("".join(x.with_suffix(".crt").read_text() for x in (first, second)))
    given = {"ssl.keystore.location": str(first), "ssl.truststore.location": str(first)}
    tls = ListenerTls(LISTENER, given, "required", connects=True)
    assert tls.connect_context().check_hostname
    with pytest.raises(ConfigError, match=f"{REFUSED}a broker with the stores in force could not"):
        tls.read_if_changed({KEYSTORE: str(second), TRUSTSTORE: str(both)})
    with pytest.raises(ConfigError, match=f"{REFUSED}a broker with the new stores could not"):
        ListenerTls(LISTENER, given, connects=True).read_if_changed({TRUSTSTORE: str(second)})
    assert renew(tls, {TRUSTSTORE: str(both)})
    assert renew(tls, {TRUSTSTORE: str(both), KEYSTORE: str(second)})
    assert renew(tls, {TRUSTSTORE: str(second), KEYSTORE: str(second)})
    assert served(tls) == shown(second)
    assert tls.connect_context().cert_store_stats()["x509"] == 1


def test_a_key_that_no_cipher_suite_wants(identities: Identities | None) -> None:
    if identities is None:
        return
    store = identities.make()  # of elliptic curves
    suites = {"ssl.cipher.suites": "TLS_RSA_WITH_AES_256_GCM_SHA384"}
    with pytest.raises(ConfigError, match=rf"^ssl\.keystore\.location={store}: no client could"):
        ListenerTls(LISTENER, {"ssl.keystore.location": str(store), **suites})

"""From `zookeeper.ssl.*` to a TLS context."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.tls.stores import server_context
from kafkapy.server.security.tls_check import check_handshake
from kafkapy.zk.kazoo.client_config import TlsConfig, ZooKeeperClientConfig
from kafkapy.zk.kazoo.tls import ssl_context
from tests.harness.security.certificates import (
    can_make,
    make_authority,
    make_identity,
    make_pkcs12,
    make_pkcs12_of,
)


def tls(**settings: str) -> TlsConfig:
    properties = {f"zookeeper.ssl.{k.replace('_', '.')}": v for k, v in settings.items()}
    properties |= {"zookeeper.connect": "h", "zookeeper.ssl.client.enable": "true"}
    config = ZooKeeperClientConfig.from_properties(properties).tls
    assert config is not None
    return config


def test_hosts_are_verified_unless_told_otherwise() -> None:
    context = ssl_context(tls())
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not ssl_context(tls(endpoint_identification_algorithm="")).check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.maximum_version is ssl.TLSVersion.TLSv1_3


def test_versions_revocation_and_ciphers_are_passed_on() -> None:
    context = ssl_context(
        tls(protocol="TLSv1.2", crl_enable="true", cipher_suites="ECDHE-RSA-AES256-GCM-SHA384")
    )
    assert context.minimum_version is context.maximum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_flags & ssl.VERIFY_CRL_CHECK_CHAIN == ssl.VERIFY_CRL_CHECK_CHAIN
    assert "ECDHE-RSA-AES256-GCM-SHA384" in {cipher["name"] for cipher in context.get_ciphers()}
    with pytest.raises(ConfigError, match=r"cipher.suites=NO has no cipher"):
        ssl_context(tls(cipher_suites="NO"))


def test_stores_are_loaded(tmp_path: Path) -> None:
    if not can_make("the PEM stores of ZooKeeper's TLS"):
        return
    store = str(make_identity(tmp_path, "client"))
    context = ssl_context(tls(truststore_location=store, keystore_location=store))
    assert len(context.get_ca_certs()) == 1


def test_the_certificate_of_an_authority_below_another_is_trusted(tmp_path: Path) -> None:
    if not can_make("a truststore of an authority below another"):
        return
    for name, issuer in (("root", None), ("middle", "root"), ("leaf", "middle")):
        make_authority(tmp_path, name, issuer)
    shown = "".join((tmp_path / name).read_text() for name in ("leaf.key", "leaf.crt"))
    (tmp_path / "leaf.pem").write_text(shown)
    trusted = str(tmp_path / "middle.crt")
    own = ssl_context(tls(truststore_location=trusted, endpoint_identification_algorithm=""))
    given = PrefixedProperties({"ssl.keystore.location": str(tmp_path / "leaf.pem")})
    check_handshake(own, server_context(given, "none"))


def test_javas_stores_are_loaded(tmp_path: Path) -> None:
    if not can_make("the PKCS12 stores of ZooKeeper's TLS"):
        return
    identity = make_identity(tmp_path, "client")
    own, trusted = make_pkcs12(identity, "p"), make_pkcs12_of(identity, "t")
    given = {"keystore_location": str(own), "truststore_location": str(trusted)}
    context = ssl_context(tls(**given, keystore_password="p", truststore_password="t"))
    assert len(context.get_ca_certs()) == 1
    with pytest.raises(ConfigError, match=r"zookeeper\.ssl\.truststore\.password does not open it"):
        ssl_context(tls(**given, keystore_password="p", truststore_password="x"))


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_a_store_that_cannot_be_used_is_named(store: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    with pytest.raises(ConfigError, match=f"{store}.location={missing} .*No such file"):
        ssl_context(tls(**{f"{store}_location": str(missing)}))
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    with pytest.raises(ConfigError, match=f"{store}.location={empty} cannot be used"):
        ssl_context(tls(**{f"{store}_location": str(empty)}))

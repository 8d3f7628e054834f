"""Users of the JAAS file, and stores by Apache's names, which messages name as well."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.zookeeper.server_security import security_of
from kafkapy.zk.service.jaas_users import DIGEST_LOGIN
from tests.harness.security.certificates import can_make, make_identity, make_pkcs12

OPTIONS = "KAFKA_OPTS"


def jaas(directory: Path, text: str, more: str = "") -> str:
    file = directory / "jaas.conf"
    file.write_text(text)
    return f"-Djava.security.auth.login.config={file} {more}"


def test_users_of_the_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OPTIONS, raising=False)
    assert security_of({}).settings.users == {}
    text = f'Server {{ {DIGEST_LOGIN} required user_kafka="a" user_super="b" other="c"; }};'
    monkeypatch.setenv(OPTIONS, jaas(tmp_path, text))
    found = security_of({})
    assert found.settings.users == {"kafka": "a", "super": "b"}
    assert "sasl" in found.settings.schemes
    assert found.tls is None
    monkeypatch.setenv(OPTIONS, jaas(tmp_path, text, "-Dzookeeper.sasl.serverconfig=Mine"))
    assert security_of({}).settings.users == {}
    monkeypatch.setenv(OPTIONS, jaas(tmp_path, text.replace("Server", "Client")))
    assert security_of({}).settings.users == {}


def test_a_section_without_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kerberos = "com.sun.security.auth.module.Krb5LoginModule"
    monkeypatch.setenv(OPTIONS, jaas(tmp_path, f"Server {{ {kerberos} required; }};"))
    with pytest.raises(ConfigError, match="the section Server, for ZooKeeper's server, must have"):
        security_of({})


def test_how_clients_show_themselves() -> None:
    with pytest.raises(ConfigError, match="Invalid value maybe for configuration"):
        security_of({"ssl.clientAuth": "maybe"})
    with pytest.raises(ConfigError, match="secureClientPort: a TLS listener needs a certificate"):
        security_of({"secureClientPort": "1"})


def test_a_store_that_cannot_be_used_is_named_as_apache_names_it(tmp_path: Path) -> None:
    config = {"secureClientPort": "1", "ssl.keyStore.location": str(tmp_path / "none.pem")}
    with pytest.raises(ConfigError, match=r"ssl\.keyStore\.location=\S*none.pem"):
        security_of(config)
    config["ssl.keyStore.passwordPath"] = str(tmp_path / "none")
    with pytest.raises(ConfigError, match=r"ssl\.keyStore\.passwordPath=\S* cannot be read"):
        security_of(config)
    (tmp_path / "none").write_bytes(b"\xff\n")
    with pytest.raises(ConfigError, match=r"ssl\.keyStore\.passwordPath=\S* is not UTF-8"):
        security_of(config)


def test_stores_and_versions(tmp_path: Path) -> None:
    if not can_make("TLS of kafkapy's ZooKeeper"):
        return
    identity = make_identity(tmp_path, "server")
    (tmp_path / "password").write_text("secret\n")
    config = {
        "secureClientPort": "1",
        "ssl.keyStore.location": str(make_pkcs12(identity, "secret")),
        "ssl.keyStore.type": "PKCS12",
        "ssl.keyStore.passwordPath": str(tmp_path / "password"),
        "ssl.trustStore.location": str(identity.with_suffix(".crt")),
        "ssl.protocol": "TLSv1.3",
    }
    modes = {"none": ssl.CERT_NONE, "want": ssl.CERT_OPTIONAL, "need": ssl.CERT_REQUIRED}
    for client_auth, mode in modes.items():
        settings, tls = security_of({**config, "ssl.clientAuth": client_auth})
        assert tls is not None
        assert tls.verify_mode == mode
        assert tls.minimum_version == ssl.TLSVersion.TLSv1_3
        assert ("x509" in settings.schemes) == (client_auth != "none")
    _, tls = security_of(config)
    assert tls is not None
    assert tls.verify_mode == ssl.CERT_REQUIRED, "as Apache's"

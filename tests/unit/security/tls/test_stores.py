"""TLS contexts of listeners and clients: what is allowed, and how the rest is refused."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties, of_listener
from kafkapy.security.tls.stores import client_context, openssl_cipher, server_context
from kafkapy.server.security.tls_check import check_handshake
from tests.harness.security.certificates import can_make, make_authority, make_identity


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    if not can_make("TLS contexts of stores"):
        return None
    return make_identity(tmp_path_factory.mktemp("tls"), "broker")


def store(identity: Path, **more: str) -> PrefixedProperties:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return PrefixedProperties({"ssl.keystore.location": str(identity), **given})


def test_a_listener_needs_a_certificate() -> None:
    with pytest.raises(ConfigError, match=r"keystore\.location to a PEM, PKCS12 or JKS file"):
        server_context(PrefixedProperties({}), "none")


@pytest.mark.parametrize(
    ("client_auth", "mode"),
    [("none", ssl.CERT_NONE), ("requested", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED)],
)
def test_client_auth(identity: Path | None, client_auth: str, mode: ssl.VerifyMode) -> None:
    if identity is not None:
        assert server_context(store(identity), client_auth).verify_mode is mode


def test_no_client_may_repeat_the_handshake_of_a_connection(identity: Path | None) -> None:
    if identity is not None:
        assert ssl.OP_NO_RENEGOTIATION in server_context(store(identity), "none").options


def test_stores_may_stand_inline(identity: Path | None) -> None:
    if identity is None:
        return
    key = identity.with_suffix(".key").read_text()
    certificate = identity.with_suffix(".crt").read_text()
    given = {
        "ssl.keystore.certificate.chain": certificate,
        "ssl.keystore.key": key,
        "ssl.truststore.certificates": certificate,
    }
    context = server_context(PrefixedProperties(given), "required")
    assert context.cert_store_stats()["x509"] == 1
    assert client_context(PrefixedProperties(given)).cert_store_stats()["x509"] == 1


def test_inline_stores_of_continued_lines_are_read(identity: Path | None) -> None:
    """Each line of PEM ends with a blank and a backslash in server.properties."""
    if identity is None:
        return
    key = identity.with_suffix(".key").read_text().replace("\n", " ")
    certificate = identity.with_suffix(".crt").read_text().replace("\n", " ")
    given = {
        "ssl.keystore.certificate.chain": certificate * 2,
        "ssl.keystore.key": key,
        "ssl.truststore.certificates": certificate * 2,
    }
    context = server_context(PrefixedProperties(given), "required")
    assert context.cert_store_stats()["x509"] == 1
    check_handshake(client_context(PrefixedProperties(given)), context)


@pytest.mark.parametrize("inline", [False, True], ids=["file", "inline"])
def test_a_key_may_have_a_password(identity: Path | None, tmp_path: Path, inline: bool) -> None:
    if identity is None:
        return
    key, certificate = identity.with_suffix(".key"), identity.with_suffix(".crt").read_text()
    words = ("openssl", "pkcs8", "-topk8", "-in", str(key), "-passout", "pass:sesame")
    locked = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    store = tmp_path / "locked.pem"
    store.write_text(locked + certificate)
    given = {"ssl.keystore.location": str(store)}
    if inline:
        given = {"ssl.keystore.certificate.chain": certificate, "ssl.keystore.key": locked}
    password = {"ssl.key.password": "sesame"}
    assert server_context(PrefixedProperties(given | password), "none")
    for wrong in ({}, {"ssl.key.password": "wrong"}):
        with pytest.raises(ConfigError) as caught:
            server_context(PrefixedProperties(given | wrong), "none")
        assert str(caught.value).startswith(next(iter(given)))
        assert "ssl.key.password does not open it" in str(caught.value)


@pytest.mark.parametrize("content", ["", "-----BEGIN CERTIFICATE-----\nAAAA\n", None])
@pytest.mark.parametrize("name", ["keystore", "truststore"])
def test_a_bad_file_is_named_with_its_property(
    identity: Path | None, tmp_path: Path, name: str, content: str | None
) -> None:
    path = tmp_path / "bad.pem"
    if content is not None:
        path.write_text(content)
    given = {} if identity is None else {"ssl.keystore.location": str(identity)}
    given[f"listener.name.x.ssl.{name}.location"] = str(path)
    with pytest.raises(ConfigError) as caught:
        server_context(of_listener(given, "X"), "required")
    expected = f"listener.name.x.ssl.{name}.location={path} cannot be used: "
    if identity is not None or name == "keystore":
        assert str(caught.value).startswith(expected)
        assert "\n" not in str(caught.value)


def test_inline_certificates_that_are_none(identity: Path | None) -> None:
    given = {"ssl.truststore.certificates": "nothing"}
    with pytest.raises(ConfigError, match=r"^ssl\.truststore\.certificates cannot be used: "):
        client_context(PrefixedProperties(given))


@pytest.mark.parametrize(
    ("enabled", "lowest", "highest"),
    [
        ("TLSv1.3", ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3),
        ("TLSv1.2", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2),
        ("TLSv1.3,TLSv1.2", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
    ],
)
def test_versions(enabled: str, lowest: ssl.TLSVersion, highest: ssl.TLSVersion) -> None:
    context = client_context(PrefixedProperties({"ssl.enabled.protocols": enabled}))
    assert (context.minimum_version, context.maximum_version) == (lowest, highest)


@pytest.mark.parametrize("enabled", ["SSLv3", "TLSv1.1,TLSv1.2"])
def test_versions_that_are_not_served(enabled: str) -> None:
    with pytest.raises(ConfigError, match=r"^ssl\.enabled\.protocols=.*TLSv1\.2, TLSv1\.3"):
        client_context(PrefixedProperties({"ssl.enabled.protocols": enabled}))


def test_cipher_suites_choose_the_versions_too() -> None:
    def made(suites: str) -> ssl.SSLContext:
        return client_context(PrefixedProperties({"ssl.cipher.suites": suites}))

    old = made("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")
    assert old.maximum_version is ssl.TLSVersion.TLSv1_2
    assert "ECDHE-RSA-AES256-GCM-SHA384" in {cipher["name"] for cipher in old.get_ciphers()}
    assert "ECDHE-RSA-AES128-GCM-SHA256" not in {cipher["name"] for cipher in old.get_ciphers()}
    assert made("TLS_AES_256_GCM_SHA384").minimum_version is ssl.TLSVersion.TLSv1_3
    with pytest.raises(ConfigError, match=r"^ssl\.cipher\.suites=NO has no cipher"):
        made("NO")


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
    ],
)
def test_cipher_names(java: str, openssl: str) -> None:
    assert openssl_cipher(java) == openssl


@pytest.mark.parametrize("trusted", ["root", "middle", "leaf"])
def test_each_certificate_of_a_truststore_is_trusted(tmp_path: Path, trusted: str) -> None:
    """Java needs no chain up to one that has signed itself."""
    if not can_make("truststores of authorities below others"):
        return
    make_authority(tmp_path, "root")
    make_authority(tmp_path, "middle", "root")
    make_authority(tmp_path, "leaf", "middle")
    shown = [(tmp_path / name).read_text() for name in ("leaf.key", "leaf.crt", "middle.crt")]
    (tmp_path / "leaf.pem").write_text("".join(shown))
    given = {
        "ssl.keystore.location": str(tmp_path / "leaf.pem"),
        "ssl.truststore.location": str(tmp_path / f"{trusted}.crt"),
        "ssl.endpoint.identification.algorithm": "",
    }
    properties = PrefixedProperties(given)
    check_handshake(client_context(properties), server_context(properties, "required"))


def test_a_certificate_of_an_authority_beside_the_trusted_one_is_refused(tmp_path: Path) -> None:
    if not can_make("truststores of authorities below others"):
        return
    for name, issuer in (("root", None), ("ours", "root"), ("theirs", "root")):
        make_authority(tmp_path, name, issuer)
    make_authority(tmp_path, "leaf", "theirs")
    shown = [(tmp_path / f"{name}").read_text() for name in ("leaf.key", "leaf.crt", "theirs.crt")]
    (tmp_path / "leaf.pem").write_text("".join(shown))
    given = {
        "ssl.keystore.location": str(tmp_path / "leaf.pem"),
        "ssl.truststore.location": str(tmp_path / "ours.crt"),
        "ssl.endpoint.identification.algorithm": "",
    }
    properties = PrefixedProperties(given)
    with pytest.raises(ssl.SSLError):
        check_handshake(client_context(properties), server_context(properties, "required"))

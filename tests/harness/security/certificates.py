"""Throw-away TLS identities, made by the openssl command."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

from tests.harness.plugins import unchecked


def can_make(what: str) -> bool:
    """Whether there is an openssl command; if not, `what` is reported as not checked."""
    if shutil.which("openssl") is None:
        unchecked.note(what, "openssl is not installed")
        return False
    return True


def make_identity(directory: Path, name: str, host: str = "localhost") -> Path:
    """A self-signed certificate for `host` with its key, in one PEM file; its own authority."""
    key, certificate = directory / f"{name}.key", directory / f"{name}.crt"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{host},IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    both = directory / f"{name}.pem"
    both.write_text(key.read_text() + certificate.read_text())
    return both


def make_authority(directory: Path, name: str, issuer: str | None = None) -> None:
    """The certificate of an authority, `name`.crt with its key, signed by `issuer` or itself."""
    ca = ("-addext", "basicConstraints=critical,CA:TRUE")
    by = () if issuer is None else ("-CA", f"{issuer}.crt", "-CAkey", f"{issuer}.key")
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-subj", f"/CN={name}", *ca),
        *("-pkeyopt", "ec_paramgen_curve:prime256v1", *by),
        *("-keyout", f"{name}.key", "-out", f"{name}.crt"),
    ]
    subprocess.run(command, check=True, capture_output=True, cwd=directory)


def make_pkcs12(identity: Path, password: str, *more: str) -> Path:
    """The key and certificate of an identity as a PKCS12 store, by openssl with `more` words."""
    store = identity.with_suffix(".p12")
    _export(store, "-in", str(identity), "-passout", f"pass:{password}", *more)
    return store


def make_pkcs12_of(identity: Path, password: str, *more: str) -> Path:
    """The certificate alone as a PKCS12 truststore."""
    store, certificate = identity.with_suffix(".trust.p12"), identity.with_suffix(".crt")
    words = ("-in", str(certificate), "-nokeys", "-passout", f"pass:{password}")
    _export(store, *words, *more)
    return store


def _export(store: Path, *words: str) -> None:
    command = ("openssl", "pkcs12", "-export", "-out", str(store), *words)
    subprocess.run(command, check=True, capture_output=True)


def can_keytool(what: str) -> bool:
    """Whether there is a Java whose keytool can be run; if not, `what` is reported."""
    if shutil.which("keytool") is None:
        unchecked.note(what, "keytool is not installed")
        return False
    return True


def keytool(store: Path, *words: str, password: str = "secret") -> None:
    """Run keytool on a store, in a JVM with settings for short runs."""
    quick = ("-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1")
    command = ("keytool", *quick, *words, "-keystore", str(store), "-storepass", password)
    subprocess.run(command, check=True, capture_output=True)


class JavaAuthority:
    """An authority and its certificates, in Java's stores of one type; password `secret`."""

    def __init__(self, directory: Path, store_type: str, algorithm: str = "SHA256withRSA") -> None:
        self._directory = directory
        self._words = ("-storetype", store_type)
        self._signed = ("-sigalg", algorithm)
        self._ca = directory / "ca.jks"
        self._generate(self._ca, "ca", "-ext", "bc:c")
        self._keytool(self._ca, "-exportcert", "-rfc", "-alias", "ca", "-file", self._pem("ca"))

    def _pem(self, name: str) -> Path:
        return self._directory / f"{name}.crt"

    def certificate(self, name: str) -> bytes:
        """The certificate of the authority (`ca`), or one that it signed; DER."""
        return ssl.PEM_cert_to_DER_cert(self._pem(name).read_text())

    def keystore(self, name: str, host: str, password: str = "secret") -> Path:
        """A keystore with a key and its certificate chain."""
        store = self._directory / f"{name}.keystore.jks"
        request, chain = store.with_suffix(".csr"), store.with_suffix(".chain")
        self._generate(store, name, password=password)
        self._keytool(store, "-certreq", "-alias", name, "-file", request, password=password)
        extension = ("-ext", f"san=dns:{host},ip:127.0.0.1", *self._signed)
        signing = ("-gencert", "-rfc", "-alias", "ca", "-infile", request)
        self._keytool(self._ca, *signing, "-outfile", self._pem(name), *extension)
        chain.write_text(self._pem(name).read_text() + self._pem("ca").read_text())
        words = ("-importcert", "-noprompt", "-alias", name, "-file", chain)
        self._keytool(store, *words, password=password)
        return store

    def truststore(self, password: str = "secret") -> Path:
        """A truststore with the authority's certificate."""
        store = self._directory / "truststore.jks"
        if not store.exists():
            words = ("-importcert", "-noprompt", "-alias", "ca", "-file", self._pem("ca"))
            self._keytool(store, *words, password=password)
        return store

    def _generate(self, store: Path, alias: str, *more: str, password: str = "secret") -> None:
        key = ("-keyalg", "RSA", "-keysize", "2048")
        words = ("-genkeypair", "-alias", alias, *key, "-dname", f"CN={alias}")
        self._keytool(store, *words, *self._signed, *more, password=password)

    def _keytool(self, store: Path, *words: str | Path, password: str = "secret") -> None:
        keytool(store, *map(str, words), *self._words, password=password)

"""Throw-away TLS identities, made by the openssl command."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support import unchecked


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


def make_pkcs12(identity: Path, password: str, *more: str) -> Path:
    """The key and certificate of an identity as a PKCS12 store, by openssl with `more` words."""
    store = identity.with_suffix(".p12")
    _export(store, "-in", str(identity), "-passout", f"pass:{password}", *more)
    return store


def make_pkcs12_of(identity: Path, password: str, *more: str) -> Path:
    """The certificate alone, for those who are to believe it."""
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
    """Run keytool on a store."""
    command = ("keytool", *words, "-keystore", str(store), "-storepass", password)
    subprocess.run(command, check=True, capture_output=True)

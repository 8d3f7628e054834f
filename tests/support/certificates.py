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

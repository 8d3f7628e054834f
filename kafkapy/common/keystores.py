"""Java's key and trust stores as PEM: PKCS12, which keytool has written since Java 9 whatever the
file is called, and which Kafka's default type `JKS` reads too.

The package `cryptography` (the extra `keystores`) opens them, those of old with 3DES and RC2 too;
it is imported when there is one. Real JKS is read by nothing that is kept up: it is refused with
the command that converts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

_OLD_MAGICS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_SEQUENCE: Final = b"\x30"


class PemStore(NamedTuple):
    """A store's private key (empty in a truststore) and its certificates, the key's own first."""

    key: str
    certificates: str


class StoreSource(NamedTuple):
    """Where a store was named, for messages: the property, the file, the password's property."""

    key: str
    location: str
    password_key: str

    def __str__(self) -> str:
        return f"{self.key}={self.location}"

    def unusable(self, why: str) -> ConfigError:
        """The error that says so."""
        return ConfigError(f"{self} cannot be used: {why}")


def is_pem(data: bytes) -> bool:
    """Whether a file is none of Java's stores."""
    return b"-----BEGIN " in data or not data.startswith((_SEQUENCE, *_OLD_MAGICS))


def keystore(data: bytes, password: str, source: StoreSource) -> PemStore:
    """The key of a store, with its certificate and those that vouch for it.

    Raises:
        ConfigError: it cannot be read, or holds no key; or `cryptography` is not there.
    """
    opened = _opened(data, password, source, "-nodes")
    if opened.key is None or opened.cert is None:
        raise source.unusable("it holds no private key with its certificate")
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = opened.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    others = [each.certificate for each in opened.additional_certs]
    return PemStore(key, _pem(_chain(opened.cert.certificate, others)))


def truststore(data: bytes, password: str, source: StoreSource) -> PemStore:
    """Every certificate of a store. Raises as `keystore`, and if there is none."""
    opened = _opened(data, password, source, "-nokeys")
    own = [] if opened.cert is None else [opened.cert]
    certificates = [each.certificate for each in (*own, *opened.additional_certs)]
    if not certificates:
        raise source.unusable("it holds no certificate")
    return PemStore("", _pem(certificates))


def _opened(data: bytes, password: str, source: StoreSource, flag: str) -> PKCS12KeyAndCertificates:
    if data.startswith(_OLD_MAGICS):
        raise source.unusable(
            "it is a JKS store of before Java 9. Convert it: keytool -importkeystore -srckeystore"
            f" {source.location} -destkeystore store.p12 -deststoretype PKCS12"
        )
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError as error:
        raise source.unusable(
            "PKCS12 stores are read by an extra: pip install 'kafkapy[keystores]'. Or convert it:"
            f" openssl pkcs12 -in {source.location} {flag} -out store.pem"
        ) from error
    try:
        return load_pkcs12(data, password.encode())
    except ValueError as error:
        raise source.unusable(
            f"it is no PKCS12 store, or {source.password_key} does not open it"
        ) from error


def _chain(own: Certificate, others: list[Certificate]) -> Iterator[Certificate]:
    """The certificate and its issuers, in the order in which TLS sends them."""
    rest, last = list(others), own
    yield own
    while issuers := [each for each in rest if each.subject == last.issuer]:
        last = issuers[0]
        rest.remove(last)
        yield last


def _pem(certificates: Iterable[Certificate]) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)

"""Java's key and trust stores as PEM: PKCS12 (keytool's format since Java 9, whatever the file's
name), and JKS with JCEKS (its format before). Kafka's default type `JKS` reads both.

The packages `cryptography` (PKCS12, also old stores with 3DES and RC2) and `purejks` (JKS) read the
stores. Both are in the extra `keystores`, and imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.common.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

# The first bytes of JKS and JCEKS stores.
_JKS_MAGICS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_SEQUENCE: Final = b"\x30"
_PYJKS_ERRORS: Final = (ValueError, TypeError, AttributeError, LookupError, RuntimeError, OSError)
"""Errors of pyjks's parser of Java's serialized objects, which pyjks does not translate."""

_NO_KEY: Final = "it holds no private key with its certificate"
_NO_CERTIFICATE: Final = "it holds no certificate"
_PEM_COLUMNS: Final = 64


class PemStore(NamedTuple):
    """A store's private key (empty in a truststore) and its certificates, the key's own first."""

    key: str
    certificates: str


class StoreSource(NamedTuple):
    """The origin of a store, for messages: the property, the file, the passwords' properties."""

    key: str
    location: str
    password_key: str
    key_password_key: str = "ssl.key.password"

    def __str__(self) -> str:
        return f"{self.key}={self.location}"

    def unusable(self, reason: str) -> ConfigError:
        """The error for a store that cannot be used."""
        return ConfigError(f"{self} cannot be used: {reason}")


def is_pem(data: bytes) -> bool:
    """Whether a file is not one of Java's stores."""
    return b"-----BEGIN " in data or not data.startswith((_SEQUENCE, *_JKS_MAGICS))


def keystore(
    data: bytes, password: str | None, source: StoreSource, key_password: str | None = None
) -> PemStore:
    """The key of a store, with its certificate chain. The key of a JKS store has a password of its
    own; by default it is the store's.

    Raises:
        ConfigError: it cannot be read, or has no key; or the package that reads it is not
          installed.
    """
    if data.startswith(_JKS_MAGICS):
        return _jks_keystore(data, password, source, key_password)
    store = _open_pkcs12(data, password, source, "-nodes")
    if store.key is None or store.cert is None:
        raise source.unusable(_NO_KEY)
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    others = [each.certificate for each in store.additional_certs]
    return PemStore(key, _pem(_chain(store.cert.certificate, others)))


def truststore(data: bytes, password: str | None, source: StoreSource) -> PemStore:
    """Every certificate of a store. Raises as `keystore`, and for a store without one."""
    if data.startswith(_JKS_MAGICS):
        return _jks_truststore(data, password, source)
    store = _open_pkcs12(data, password, source, "-nokeys")
    own = [] if store.cert is None else [store.cert]
    certificates = [each.certificate for each in (*own, *store.additional_certs)]
    if not certificates:
        raise source.unusable(_NO_CERTIFICATE)
    return PemStore("", _pem(certificates))


def _jks_keystore(
    data: bytes, password: str | None, source: StoreSource, key_password: str | None
) -> PemStore:
    store = _open_jks(data, password, source)
    entry = next(iter(store.private_keys.values()), None)
    if entry is None or not entry.cert_chain:
        raise source.unusable(_NO_KEY)
    import jks
    from pyasn1.error import PyAsn1Error

    try:
        entry.decrypt(key_password if key_password is not None else password or "")
    except (jks.KeystoreException, PyAsn1Error) as error:
        # JCEKS: one wrong password in 256 leaves valid padding, and bytes that are not ASN.1.
        name = source.key_password_key if key_password is not None else source.password_key
        raise source.unusable(f"{name} does not open its key {entry.alias}") from error
    chain = "".join(_pem_of("CERTIFICATE", certificate) for _, certificate in entry.cert_chain)
    return PemStore(_pem_of("PRIVATE KEY", entry.pkey_pkcs8), chain)


def _jks_truststore(data: bytes, password: str | None, source: StoreSource) -> PemStore:
    certificates = [entry.cert for entry in _open_jks(data, password, source).certs.values()]
    if not certificates:
        raise source.unusable(_NO_CERTIFICATE)
    return PemStore("", "".join(_pem_of("CERTIFICATE", each) for each in certificates))


def _open_jks(data: bytes, password: str | None, source: StoreSource) -> Any:
    """Open a JKS store, but not its keys. Without a password its integrity is not checked, as in
    Java.
    """
    try:
        import jks
    except ImportError as error:
        raise source.unusable(
            "a JKS store needs the package purejks: pip install purejks. Or convert it:"
            f" keytool -importkeystore -srckeystore {source.location} -destkeystore store.p12"
            " -deststoretype PKCS12"
        ) from error
    try:
        return jks.KeyStore.loads(data, password, try_decrypt_keys=False)
    except (jks.KeystoreException, *_PYJKS_ERRORS) as error:
        raise source.unusable(
            f"it is no JKS store, or {source.password_key} does not open it"
        ) from error


def _open_pkcs12(
    data: bytes, password: str | None, source: StoreSource, flag: str
) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError as error:
        raise source.unusable(
            "a PKCS12 store needs the package cryptography: pip install cryptography. Or convert"
            f" it: openssl pkcs12 -in {source.location} {flag} -out store.pem"
        ) from error
    try:
        return load_pkcs12(data, (password or "").encode())
    except ValueError as error:
        raise source.unusable(
            f"it is no PKCS12 store, or {source.password_key} does not open it"
        ) from error


def _chain(leaf: Certificate, others: list[Certificate]) -> Iterator[Certificate]:
    """The certificate and its issuers, in the order in which TLS sends them."""
    rest, last = list(others), leaf
    yield leaf
    while issuers := [each for each in rest if each.subject == last.issuer]:
        last = issuers[0]
        rest.remove(last)
        yield last


def _pem(certificates: Iterable[Certificate]) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def _pem_of(label: str, der: bytes) -> str:
    import base64
    import textwrap

    body = "\n".join(textwrap.wrap(base64.b64encode(der).decode(), _PEM_COLUMNS))
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"

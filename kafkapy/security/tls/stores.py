"""TLS contexts from Kafka's `ssl.*` properties; `ssl` is imported on demand.

Stores are PEM (`ssl.truststore.type=PEM`, KIP-651), in files or inline, or Java's (`keystores`).

OpenSSL refuses certificates with SHA-1 signatures or small keys. Java accepts them from authorities
outside its default truststore. With `kafkapy.ssl.allow.sha1=true`, they are accepted here too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.tls import keystores
from kafkapy.security.tls.keystores import PemStore, StoreSource

if TYPE_CHECKING:
    import ssl

ALLOW_SHA1: Final = "kafkapy.ssl.allow.sha1"
SECURITY_LEVEL_0: Final = "@SECLEVEL=0"
"""The last entry of an OpenSSL cipher list for security level 0."""
TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
CLIENT_AUTH: Final = ("none", "requested", "required")
_PEM_CHAIN: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL
)
_PEM_BLOCK: Final = re.compile(
    r"\s*(-----BEGIN [^-]+-----)\s([\w+/=\s]+)(-----END [^-]+-----)", re.ASCII
)
_PEM_NAMES: Final = (".pem", ".crt", ".cer", ".key")
_TLS_1_3_SUITES: Final = ("TLS_AES_", "TLS_CHACHA20_")
# OpenSSL's reasons for refusing the signature or the key of a certificate.
_WEAKNESS_REASONS: Final = ("md too weak", "key too small")


def client_context(properties: PrefixedProperties) -> ssl.SSLContext:
    """The TLS context of a client; without a truststore the system's authorities are trusted.

    Raises:
        ConfigError: names the property that is wrong: a store is unreadable, or has nothing usable;
          a version or a cipher is unknown.
    """
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    allow_sha1(context, properties)
    if not properties.text("ssl.endpoint.identification.algorithm", "https"):
        context.check_hostname = False
    if not load_trust(context, properties):
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    load_identity(context, properties)
    _set_versions_and_ciphers(context, properties)
    return context


def server_context(properties: PrefixedProperties, client_auth: str) -> ssl.SSLContext:
    """The TLS context of a listener; `client_auth` is the value of `ssl.client.auth`. Raises as
    `client_context`, and without a certificate."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # OpenSSL 1.1 lets a client of TLS 1.2 repeat the handshake, at the cost of the server.
    context.options |= ssl.OP_NO_RENEGOTIATION
    allow_sha1(context, properties)
    if not load_identity(context, properties):
        raise ConfigError(
            "a TLS listener needs a certificate: set ssl.keystore.location to a PEM, PKCS12 or JKS"
            " file, or ssl.keystore.certificate.chain and ssl.keystore.key"
        )
    has_truststore = load_trust(context, properties)  # fails even if clients need no certificate
    if client_auth != "none":
        required = client_auth == "required"
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
        if not has_truststore:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    _set_versions_and_ciphers(context, properties)
    return context


class Store(NamedTuple):
    """A keystore or truststore in a file. `converted` is its content as PEM, if the file is not
    PEM.
    """

    source: StoreSource
    converted: PemStore | None


def store_of(properties: PrefixedProperties, kind: str) -> Store | None:
    """The file of `ssl.<kind>.location`, a `keystore` or a `truststore`; None without one.

    A file is PEM if its type is PEM or, without a type, if its name ends as a PEM file's. Otherwise
    its content decides.

    Raises:
        ConfigError: it is one of Java's stores and cannot be used.
    """
    name = f"ssl.{kind}.location"
    location = properties.get(name)
    if location is None:
        return None
    source = StoreSource(
        properties.key(name),
        location,
        properties.key(f"ssl.{kind}.password"),
        properties.key("ssl.key.password"),
    )
    type_ = properties.text(f"ssl.{kind}.type", "PEM" if location.endswith(_PEM_NAMES) else "JKS")
    if type_.upper() == "PEM":
        return Store(source, None)
    try:
        with open(location, "rb") as file:
            data = file.read()
    except OSError as error:
        raise source.unusable(error.strerror or str(error)) from error
    if keystores.is_pem(data):
        return Store(source, None)
    password = properties.get(f"ssl.{kind}.password")
    if kind == "truststore":
        return Store(source, keystores.truststore(data, password, source))
    key_password = properties.get("ssl.key.password")
    return Store(source, keystores.keystore(data, password, source, key_password))


def sha1_is_allowed(properties: PrefixedProperties) -> bool:
    """Whether `kafkapy.ssl.allow.sha1` is true. Logs a warning if so."""
    if properties.text(ALLOW_SHA1, "false").lower() != "true":
        return False
    # Imported on demand: most tools start without it.
    import logging

    logging.getLogger("kafka.security.ssl").warning(
        "%s=true: certificates signed with SHA-1, or with keys below 2048 bits, are accepted, as by"
        " Java. They can be forged: issue them anew",
        properties.key(ALLOW_SHA1),
    )
    return True


def allow_sha1(context: ssl.SSLContext, properties: PrefixedProperties) -> None:
    """Accept weak certificates, if the properties allow them. Ciphers are unchanged."""
    if sha1_is_allowed(properties):
        names = (cipher["name"] for cipher in context.get_ciphers())
        tls_1_2_suites = [name for name in names if not name.startswith(_TLS_1_3_SUITES)]
        context.set_ciphers(":".join([*tls_1_2_suites, SECURITY_LEVEL_0]))


def openssl_cipher(name: str) -> str:
    """OpenSSL's name of a TLS 1.2 cipher suite, from Java's name."""
    if "_WITH_" not in name:
        return name
    keys, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = re.sub(r"AES_(128|256)", r"AES\1", cipher)
    cipher = re.sub(r"_CBC(?=_)", "", cipher).replace("_POLY1305_SHA256", "_POLY1305")
    return (cipher if keys == "RSA" else f"{keys}-{cipher}").replace("_", "-")


def load_trust(context: ssl.SSLContext, properties: PrefixedProperties) -> bool:
    """Load the truststore, if one is configured. Returns whether it is.

    As in Java, each of its certificates is a trust anchor, including intermediate ones.

    Raises:
        ConfigError: it cannot be used.
    """
    import ssl

    inline = properties.get("ssl.truststore.certificates")
    store = store_of(properties, "truststore") if inline is None else None
    arguments: dict[str, Any]
    if inline is not None:
        key = properties.key("ssl.truststore.certificates")
        arguments = {"cadata": "\n".join(_PEM_CHAIN.findall(pem_with_lines(inline)))}
    elif store is None:
        return False
    else:
        key = str(store.source)
        arguments = {"cafile": store.source.location}
        if store.converted is not None:
            arguments = {"cadata": store.converted.certificates}
    _load(key, lambda: context.load_verify_locations(**arguments))
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return True


def load_identity(context: ssl.SSLContext, properties: PrefixedProperties) -> bool:
    """Load the keystore, if one is configured. Returns whether it is.

    Raises:
        ConfigError: it cannot be used.
    """
    # "" instead of None: without a password, OpenSSL would prompt for one on the terminal.
    password = properties.text("ssl.key.password")
    chain = properties.get("ssl.keystore.certificate.chain")
    if chain is not None:
        key = properties.key("ssl.keystore.certificate.chain")
        inline = PemStore(
            pem_with_lines(properties.text("ssl.keystore.key")), pem_with_lines(chain)
        )
        _load_text(context, key, inline, password)
        return True
    store = store_of(properties, "keystore")
    if store is None:
        return False
    key, location = str(store.source), store.source.location
    if store.converted is not None:
        _load_text(context, key, store.converted, "")
    else:
        _load(key, lambda: context.load_cert_chain(location, password=password))
    return True


def pem_with_lines(text: str) -> str:
    """PEM with line ends, which OpenSSL requires. A property may have blanks in their place."""

    def block(found: re.Match[str]) -> str:
        lines = re.findall(".{1,64}", "".join(found[2].split()))
        return "\n".join(("", found[1], *lines, found[3], ""))

    return _PEM_BLOCK.sub(block, text)


def _load_text(context: ssl.SSLContext, key: str, store: PemStore, password: str) -> None:
    # The standard library reads keys from files only. This file is private, and soon deleted.
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(f"{store.key}\n{store.certificates}")
        file.flush()
        _load(key, lambda: context.load_cert_chain(file.name, password=password))


def _load(key: str, load: Callable[[], None]) -> None:
    try:
        load()
    except (OSError, ValueError) as error:  # ValueError: no certificate at all
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if "PEM lib" in reason or "bad decrypt" in reason.lower():
            reason = "no key and certificate in PEM form, or ssl.key.password does not open it"
        if any(each in reason for each in _WEAKNESS_REASONS):
            reason = (
                f"{reason}: a certificate is signed with SHA-1, or its key is below 2048 bits."
                f" Issue it anew, or accept it, as Java does: {ALLOW_SHA1}=true"
            )
        raise ConfigError(f"{key} cannot be used: {reason}") from error


def _set_versions_and_ciphers(context: ssl.SSLContext, properties: PrefixedProperties) -> None:
    """Set TLS versions and ciphers."""
    import ssl

    names = properties.items("ssl.enabled.protocols", ",".join(TLS_VERSIONS))
    unknown = [name for name in names if name not in TLS_VERSIONS]
    if unknown or not names:
        raise ConfigError(
            f"{properties.key('ssl.enabled.protocols')}={','.join(names)}: allowed are"
            f" {', '.join(TLS_VERSIONS)}"
        )
    suites = properties.items("ssl.cipher.suites")
    if suites:
        # OpenSSL enables its TLS 1.3 suites only as a whole, by the version.
        tls_1_2_suites = [name for name in suites if not name.startswith(_TLS_1_3_SUITES)]
        usable = (("TLSv1.2", tls_1_2_suites), ("TLSv1.3", len(tls_1_2_suites) < len(suites)))
        names = [name for name in names if dict(usable)[name]]
        try:
            context.set_ciphers(":".join(map(openssl_cipher, tls_1_2_suites)) or "DEFAULT")
        except ssl.SSLError:
            names = []
        if not names:
            raise ConfigError(
                f"{properties.key('ssl.cipher.suites')}={','.join(suites)} has no cipher that is"
                " known here for ssl.enabled.protocols"
            )
    versions = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
    allowed = [versions[name] for name in names]
    context.minimum_version, context.maximum_version = min(allowed), max(allowed)

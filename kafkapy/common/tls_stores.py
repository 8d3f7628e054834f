"""TLS contexts from Kafka's `ssl.*` properties; `ssl` is imported on demand.

Stores are PEM (`ssl.truststore.type=PEM`, KIP-651), in files or inline. Java's JKS and PKCS12
stores are refused with the command that converts them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties

if TYPE_CHECKING:
    import ssl

TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
CLIENT_AUTH: Final = ("none", "requested", "required")
_PEM_CHAIN: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL
)
_PEM_NAMES: Final = (".pem", ".crt", ".cer", ".key")
_TLS_1_3_SUITES: Final = ("TLS_AES_", "TLS_CHACHA20_")


def client_context(properties: PrefixedProperties) -> ssl.SSLContext:
    """What a client connects with; without a truststore the system's authorities are trusted.

    Raises:
        ConfigError: names the property that is wrong: a store is not PEM, cannot be read, or
            holds nothing usable; a version or a cipher is not known.
    """
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not properties.text("ssl.endpoint.identification.algorithm", "https"):
        context.check_hostname = False
    if not _trust(context, properties):
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    _identify(context, properties)
    _negotiate(context, properties)
    return context


def server_context(properties: PrefixedProperties, client_auth: str) -> ssl.SSLContext:
    """What a listener accepts with; `client_auth` is that of `ssl.client.auth`. Raises as
    `client_context`, and if there is no certificate."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if not _identify(context, properties):
        raise ConfigError(
            "a TLS listener needs a certificate: set ssl.keystore.location to a PEM file, or"
            " ssl.keystore.certificate.chain and ssl.keystore.key"
        )
    trusts = _trust(context, properties)  # which may be wrong although nobody is asked
    if client_auth != "none":
        required = client_auth == "required"
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
        if not trusts:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    _negotiate(context, properties)
    return context


def pem_location(properties: PrefixedProperties, store: str) -> str | None:
    """The file of `ssl.<store>.location`, which must be PEM.

    Raises:
        ConfigError: the store is of a Java type.
    """
    name = f"ssl.{store}.location"
    location = properties.get(name)
    if location is None:
        return None
    inferred = "PEM" if location.endswith(_PEM_NAMES) else "JKS"
    kind = properties.text(f"ssl.{store}.type", inferred).upper()
    if kind != "PEM":
        raise ConfigError(
            f"{properties.key(name)} {location} is of type {kind}; only PEM is read. Convert it: "
            f"keytool -importkeystore -srckeystore {location} -destkeystore store.p12 "
            "-deststoretype PKCS12 && openssl pkcs12 -in store.p12 -nodes -out store.pem"
        )
    return location


def openssl_cipher(name: str) -> str:
    """OpenSSL's name of a cipher suite of TLS 1.2 that has Java's."""
    if "_WITH_" not in name:
        return name
    keys, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = re.sub(r"AES_(128|256)", r"AES\1", cipher)
    cipher = re.sub(r"_CBC(?=_)", "", cipher).replace("_POLY1305_SHA256", "_POLY1305")
    return (cipher if keys == "RSA" else f"{keys}-{cipher}").replace("_", "-")


def _trust(context: ssl.SSLContext, properties: PrefixedProperties) -> bool:
    """Load the truststore, if there is one."""
    inline = properties.get("ssl.truststore.certificates")
    location = pem_location(properties, "truststore")
    if inline is not None:
        certificates = "\n".join(_PEM_CHAIN.findall(inline))
        key = properties.key("ssl.truststore.certificates")
        _load(key, lambda: context.load_verify_locations(cadata=certificates))
    elif location is not None:
        key = f"{properties.key('ssl.truststore.location')}={location}"
        _load(key, lambda: context.load_verify_locations(cafile=location))
    return inline is not None or location is not None


def _identify(context: ssl.SSLContext, properties: PrefixedProperties) -> bool:
    """Load the keystore, if there is one."""
    # "" and not None: without a password OpenSSL would ask the terminal for one.
    password = properties.text("ssl.key.password")
    chain = properties.get("ssl.keystore.certificate.chain")
    location = pem_location(properties, "keystore")
    if chain is not None:
        # The standard library reads keys from files only; this one is private and gone at once.
        import tempfile

        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(properties.text("ssl.keystore.key") + "\n" + chain)
            file.flush()
            key = properties.key("ssl.keystore.certificate.chain")
            _load(key, lambda: context.load_cert_chain(file.name, password=password))
    elif location is not None:
        key = f"{properties.key('ssl.keystore.location')}={location}"
        _load(key, lambda: context.load_cert_chain(location, password=password))
    return chain is not None or location is not None


def _load(key: str, load: Callable[[], None]) -> None:
    try:
        load()
    except (OSError, ValueError) as error:  # the latter: no certificate at all
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if "PEM lib" in reason or "bad decrypt" in reason.lower():
            reason = "no key and certificate in PEM form, or ssl.key.password does not open it"
        raise ConfigError(f"{key} cannot be used: {reason}") from error


def _negotiate(context: ssl.SSLContext, properties: PrefixedProperties) -> None:
    """Versions and ciphers."""
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
        # OpenSSL has its suites of TLS 1.3 on or off as a whole, by the version.
        older = [name for name in suites if not name.startswith(_TLS_1_3_SUITES)]
        usable = (("TLSv1.2", older), ("TLSv1.3", len(older) < len(suites)))
        names = [name for name in names if dict(usable)[name]]
        try:
            context.set_ciphers(":".join(map(openssl_cipher, older)) or "DEFAULT")
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

"""How a connection is secured, from Kafka's client properties; `ssl` is imported on demand.

Stores are PEM (`ssl.truststore.type=PEM`, KIP-651), in files or inline. Java's JKS and PKCS12
stores are refused with the command that converts them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.errors import ConfigError

if TYPE_CHECKING:
    import socket
    import ssl

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_JAAS_OPTION: Final = re.compile(r"\b(username|password)\s*=\s*(\"(?:\\.|[^\"\\])*\"|[^\s;]+)")
_PEM_CHAIN: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL
)


class Credentials(NamedTuple):
    """What SASL PLAIN and SCRAM need."""

    username: str
    password: str


class Security(NamedTuple):
    """The security protocol of a connection and the properties that detail it."""

    protocol: str
    sasl_mechanism: str
    properties: Mapping[str, str]

    @property
    def encrypted(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    def credentials(self) -> Credentials:
        """The user named by `sasl.jaas.config`.

        Raises:
            ConfigError: there is no such user.
        """
        jaas = self.properties.get("sasl.jaas.config", "")
        found = {name: _unquote(value) for name, value in _JAAS_OPTION.findall(jaas)}
        if "username" not in found or "password" not in found:
            raise ConfigError(
                "sasl.jaas.config must name a user, for example: "
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                'username="alice" password="secret";'
            )
        return Credentials(found["username"], found["password"])

    def wrap(self, plain: socket.socket, host: str) -> ssl.SSLSocket:
        """Start TLS on a connected socket."""
        return ssl_context(self.properties).wrap_socket(plain, server_hostname=host)


def security_from(properties: Mapping[str, str]) -> Security:
    """Read the `security.*` and `sasl.*` properties.

    Raises:
        ConfigError: names the property, its value and what is allowed.
    """
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(
            f"Invalid value {protocol} for configuration security.protocol: "
            f"String must be one of: {', '.join(PROTOCOLS)}"
        )
    return Security(protocol, properties.get("sasl.mechanism", "GSSAPI").upper(), properties)


def ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """The TLS context that the `ssl.*` properties describe.

    Raises:
        ConfigError: a store is not PEM, cannot be read, or holds nothing usable.
    """
    import ssl

    context = ssl.create_default_context()
    if not properties.get("ssl.endpoint.identification.algorithm", "https"):
        context.check_hostname = False
    try:
        _trust(context, properties)
        _identify(context, properties)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"The TLS stores cannot be used: {reason}") from error
    return context


def pem_location(properties: Mapping[str, str], store: str) -> str | None:
    """The file of `ssl.<store>.location`, which must be PEM.

    Raises:
        ConfigError: the store is of a Java type.
    """
    location = properties.get(f"ssl.{store}.location")
    kind = properties.get(f"ssl.{store}.type", "PEM" if _looks_pem(location) else "JKS").upper()
    if location is not None and kind != "PEM":
        raise ConfigError(
            f"ssl.{store}.location {location} is of type {kind}; only PEM is read. Convert it: "
            f"keytool -importkeystore -srckeystore {location} -destkeystore store.p12 "
            "-deststoretype PKCS12 && openssl pkcs12 -in store.p12 -nodes -out store.pem"
        )
    return location


def _looks_pem(location: str | None) -> bool:
    return location is not None and location.endswith((".pem", ".crt", ".cer", ".key"))


def _trust(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    inline = properties.get("ssl.truststore.certificates")
    location = pem_location(properties, "truststore")
    if inline is not None:
        context.load_verify_locations(cadata="\n".join(_PEM_CHAIN.findall(inline)))
    elif location is not None:
        context.load_verify_locations(cafile=location)


def _identify(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    password = properties.get("ssl.key.password")
    chain = properties.get("ssl.keystore.certificate.chain")
    location = pem_location(properties, "keystore")
    if chain is not None:
        # The standard library reads keys from files only; this one is private and gone at once.
        import tempfile

        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(properties.get("ssl.keystore.key", "") + "\n" + chain)
            file.flush()
            context.load_cert_chain(file.name, password=password)
    elif location is not None:
        context.load_cert_chain(location, password=password)


def _unquote(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value

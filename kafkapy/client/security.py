"""The security of a connection, from Kafka's client properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.sasl.jaas import Credentials, jaas_credentials
from kafkapy.security.tls import stores as tls_stores
from kafkapy.security.tls.stores import Store

if TYPE_CHECKING:
    import socket
    import ssl

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Security(NamedTuple):
    """The security protocol of a connection, and its properties."""

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
            ConfigError: it names no user.
        """
        return jaas_credentials(self.properties.get("sasl.jaas.config", ""))

    def wrap(self, plain: socket.socket, host: str) -> ssl.SSLSocket:
        """Start TLS on a connected socket."""
        return ssl_context(self.properties).wrap_socket(plain, server_hostname=host)


def security_from(properties: Mapping[str, str]) -> Security:
    """Read the `security.*` and `sasl.*` properties. Without `sasl.jaas.config` the login is that
    of the section `KafkaClient` in KAFKA_OPTS's JAAS file.

    Raises:
        ConfigError: names the property, its value and what is allowed; or the file.
    """
    properties = {name: value.strip() for name, value in properties.items()}  # as Java's clients do
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(
            f"Invalid value {protocol} for configuration security.protocol: "
            f"String must be one of: {', '.join(PROTOCOLS)}"
        )
    mechanism = properties.get("sasl.mechanism", "GSSAPI").upper()
    if protocol.startswith("SASL_") and "sasl.jaas.config" not in properties:
        from kafkapy.common.java_environment import with_login_config
        from kafkapy.security.sasl.jaas_file import with_client_login

        properties = with_client_login(with_login_config(properties), mechanism)
    return Security(protocol, mechanism, properties)


def ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """The TLS context of the `ssl.*` properties.

    Raises:
        ConfigError: a store is unreadable, or has no usable entry.
    """
    return tls_stores.client_context(PrefixedProperties(properties))


def store_of(properties: Mapping[str, str], kind: str) -> Store | None:
    """The file of `ssl.<kind>.location`, a `keystore` or a `truststore`, if there is one.

    Raises:
        ConfigError: it is one of Java's stores and cannot be used.
    """
    return tls_stores.store_of(PrefixedProperties(properties), kind)

"""Kerberos keys and tickets of a client or a broker, from Kafka's properties and a JAAS line of
`Krb5LoginModule`: a keytab, or a ticket cache that another program maintains.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.sasl.jaas import jaas_options

MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE_NAME: Final = "sasl.kerberos.service.name"
_JAAS: Final = "sasl.jaas.config"
_CREDENTIAL_OPTIONS: Final = (
    'useKeyTab=true keyTab="/path" principal="name@REALM", or useTicketCache=true'
)


class KerberosLogin(NamedTuple):
    """`key` is the property of the JAAS line. `keytab` and `ticket_cache` are None if they are not
    used, and empty for Kerberos' defaults.
    """

    key: str
    service: str
    principal: str = ""
    keytab: str | None = None
    ticket_cache: str | None = None


def kerberos_login(properties: PrefixedProperties) -> KerberosLogin:
    """Read `sasl.jaas.config` and `sasl.kerberos.service.name`.

    Raises:
        ConfigError: names the property and what is expected.
    """
    key = properties.key_to_set(_JAAS)
    line = properties.text(_JAAS)
    if "Krb5LoginModule" not in line:
        raise ConfigError(
            f"{key} must be a line of Krb5LoginModule for GSSAPI, for example: {MODULE} required"
            ' useKeyTab=true storeKey=true keyTab="/etc/alice.keytab" principal="alice@REALM";'
        )
    options = jaas_options(line)
    keytab, cache = _path_if_used(options, "keyTab"), _path_if_used(options, "ticketCache")
    if keytab is None and cache is None:
        raise ConfigError(f"{key} must have {_CREDENTIAL_OPTIONS}: nobody is asked for a password")
    principal = options.get("principal", "").strip()
    if keytab is not None and not principal:
        raise ConfigError(f"{key} must name the principal whose key is in the keytab")
    return KerberosLogin(key, _service(properties, options, key), principal, keytab, cache)


def keytab_login(properties: PrefixedProperties) -> KerberosLogin:
    """The login settings of a server, which needs a keytab. Raises ConfigError."""
    login = kerberos_login(properties)
    if login.keytab is None:
        raise ConfigError(
            f"{login.key} must have useKeyTab=true, and the principal of the broker:"
            ' principal="kafka/host@REALM"'
        )
    return login


def _path_if_used(options: Mapping[str, str], name: str) -> str | None:
    """The path of a keytab or ticket cache, if it is used."""
    if options.get(f"use{name[0].upper()}{name[1:]}", "").lower() != "true":
        return None
    return options.get(name, "").strip()


def _service(properties: PrefixedProperties, options: Mapping[str, str], key: str) -> str:
    own, common = options.get("serviceName"), properties.text(SERVICE_NAME).strip()
    if own and common and own != common:
        raise ConfigError(
            f"{key} has serviceName={own}, and {properties.key(SERVICE_NAME)} is {common}"
        )
    service = own or common
    if not service:
        raise ConfigError(
            f"{SERVICE_NAME} must be the first part of the brokers' principals, for example: kafka"
        )
    return service

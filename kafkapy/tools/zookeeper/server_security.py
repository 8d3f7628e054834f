"""Logins and TLS of kafkapy's ZooKeeper server, from the properties of Apache's server."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_environment import (
    LOGIN_CONFIG,
    ZOOKEEPER_SERVER_SECTION,
    system_properties,
    with_login_config,
)
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.tls.stores import server_context
from kafkapy.zk.service.jaas_users import SECTION, digest_users
from kafkapy.zk.service.settings import ServiceSettings, settings_from

TLS_KEYS: Final = frozenset(
    (
        *("secureClientPort", "secureClientPortAddress", "serverCnxnFactory", "ssl.clientAuth"),
        *("ssl.keyStore.location", "ssl.keyStore.password", "ssl.keyStore.passwordPath"),
        *("ssl.keyStore.type", "ssl.trustStore.location", "ssl.trustStore.password"),
        *("ssl.trustStore.passwordPath", "ssl.trustStore.type"),
        *("ssl.protocol", "ssl.enabledProtocols", "ssl.ciphersuites"),
    )
)
"""The properties that are read here."""

_CLIENT_AUTH: Final = {"none": "none", "want": "requested", "need": "required"}
# Apache ZooKeeper's names of properties, and Kafka's names.
_NAMES: Final = {
    "ssl.keyStore.location": "ssl.keystore.location",
    "ssl.keyStore.type": "ssl.keystore.type",
    "ssl.trustStore.location": "ssl.truststore.location",
    "ssl.trustStore.type": "ssl.truststore.type",
    "ssl.enabledProtocols": "ssl.enabled.protocols",
    "ssl.ciphersuites": "ssl.cipher.suites",
}


class ServerSecurity(NamedTuple):
    """The settings of a server, and its TLS context if it has a secure port."""

    settings: ServiceSettings
    tls: ssl.SSLContext | None


def security_of(config: Mapping[str, str]) -> ServerSecurity:
    """The settings and the TLS of a configuration, with the users of the JAAS file.

    Raises:
        ConfigError: a setting is wrong, or a store or the JAAS file cannot be used.
    """
    is_secure = "secureClientPort" in config
    client_auth = config.get("ssl.clientAuth", "need").strip().lower()
    if client_auth not in _CLIENT_AUTH:
        raise ConfigError(
            f"Invalid value {client_auth} for configuration ssl.clientAuth: it must be none, want"
            " or need"
        )
    section = system_properties().get(ZOOKEEPER_SERVER_SECTION, SECTION)
    users = digest_users(with_login_config({}).get(LOGIN_CONFIG), section)
    settings = settings_from(config, users, is_secure and client_auth != "none")
    return ServerSecurity(settings, _context(config, client_auth) if is_secure else None)


def _context(config: Mapping[str, str], client_auth: str) -> ssl.SSLContext:
    properties = {name: config[key] for key, name in _NAMES.items() if key in config}
    if "ssl.protocol" in config:
        properties.setdefault("ssl.enabled.protocols", config["ssl.protocol"])
    for kind in ("keyStore", "trustStore"):
        password = _password(config, f"ssl.{kind}.password")
        if password is not None:
            properties[f"ssl.{kind.lower()}.password"] = password
    # ZooKeeper has no key password: the key has the password of its store.
    if "ssl.keystore.password" in properties:
        properties["ssl.key.password"] = properties["ssl.keystore.password"]
    try:
        return server_context(PrefixedProperties(properties), _CLIENT_AUTH[client_auth])
    except ConfigError as error:
        message = str(error)
        for kind in ("keyStore", "trustStore"):
            message = message.replace(f"ssl.{kind.lower()}", f"ssl.{kind}")
        raise ConfigError(f"secureClientPort: {message}") from error


def _password(config: Mapping[str, str], key: str) -> str | None:
    """A password, or the content of the file that has it."""
    path = config.get(f"{key}Path")
    if path is None:
        return config.get(key)
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\n")
    except OSError as error:
        raise ConfigError(f"{key}Path={path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError(f"{key}Path={path} is not UTF-8") from None

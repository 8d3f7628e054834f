"""The connection to ZooKeeper: Kafka's `zookeeper.*` keys, checked before anything connects.

Kafka passes SASL logins and other credentials to ZooKeeper's client by JVM system properties. This
module reads the section `Client` of a JAAS file in KAFKA_OPTS. `kafkapy.zookeeper.sasl.jaas.config`
holds the line of such a section, and takes precedence. `kafkapy.zookeeper.auth` holds
`scheme:credential` (`digest:kafka:secret`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kafkapy.common.config_def import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConfigValue,
    Validator,
    at_least,
    list_of,
)
from kafkapy.common.errors import ConfigError
from kafkapy.common.java_environment import LOGIN_CONFIG, ZOOKEEPER_SECTION
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.sasl import jaas_file
from kafkapy.security.tls.stores import ALLOW_SHA1

DEFAULT_PORT: Final = 2181
SASL_LOGIN: Final = "kafkapy.zookeeper.sasl.jaas.config"
AUTH: Final = "kafkapy.zookeeper.auth"
CLIENT_SOCKETS: Final = tuple(
    f"org.apache.zookeeper.ClientCnxnSocket{kind}" for kind in ("Netty", "NIO")
)
TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")

_PREFIX: Final = "zookeeper."
_STORES: Final = (f"{_PREFIX}ssl.keystore.", f"{_PREFIX}ssl.truststore.")
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+)(?::([0-9]{1,5}))?")
_JAAS_LINE: Final = re.compile(r"\s*(\S+)\s+\w+\s*(.*?);?\s*", re.DOTALL)
_JAAS_OPTION: Final = re.compile(r"(\w+)\s*=\s*\"((?:\\.|[^\"\\])*)\"")
_DIGEST_LOGIN: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"


def _key(
    name: str,
    kind: ConfigType = ConfigType.STRING,
    default: ConfigValue = None,
    rule: tuple[Validator | None, str] = (None, ""),
) -> ConfigKey:
    return ConfigKey(name, kind, default, *rule)


ZOOKEEPER_CLIENT_CONFIGS: Final = ConfigDef(
    [
        _key("zookeeper.connect"),
        _key("zookeeper.session.timeout.ms", ConfigType.INT, 18_000, at_least(1)),
        _key("zookeeper.connection.timeout.ms", ConfigType.INT, None, at_least(1)),
        _key("zookeeper.max.in.flight.requests", ConfigType.INT, 10, at_least(1)),
        _key("zookeeper.set.acl", ConfigType.BOOLEAN, False),
        _key("zookeeper.clientCnxnSocket"),
        _key("zookeeper.ssl.client.enable", ConfigType.BOOLEAN, False),
        _key("zookeeper.ssl.keystore.location"),
        _key("zookeeper.ssl.keystore.password", ConfigType.PASSWORD),
        _key("zookeeper.ssl.keystore.type"),
        _key("zookeeper.ssl.truststore.location"),
        _key("zookeeper.ssl.truststore.password", ConfigType.PASSWORD),
        _key("zookeeper.ssl.truststore.type"),
        _key("zookeeper.ssl.protocol"),
        _key("zookeeper.ssl.enabled.protocols", ConfigType.LIST, None, list_of(*TLS_VERSIONS)),
        _key("zookeeper.ssl.cipher.suites", ConfigType.LIST, None),
        _key("zookeeper.ssl.endpoint.identification.algorithm", ConfigType.STRING, "HTTPS"),
        _key("zookeeper.ssl.crl.enable", ConfigType.BOOLEAN, False),
        _key("zookeeper.ssl.ocsp.enable", ConfigType.BOOLEAN, False),
        _key(ALLOW_SHA1, ConfigType.BOOLEAN, False),
        _key(LOGIN_CONFIG),
        _key(ZOOKEEPER_SECTION, ConfigType.STRING, "Client"),
        _key(SASL_LOGIN, ConfigType.PASSWORD),
        _key(AUTH, ConfigType.PASSWORD),
    ]
)


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """TLS to ZooKeeper. `stores` has the properties of keystore and truststore."""

    stores: PrefixedProperties
    versions: tuple[str, ...]
    ciphers: tuple[str, ...]
    verify_host: bool
    check_revocation: bool


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """A DIGEST-MD5 login."""

    username: str
    password: str


@dataclass(frozen=True, slots=True)
class ZooKeeperClientConfig:
    """An ensemble, and the settings of its client. `chroot` is "" or a path."""

    hosts: tuple[str, ...]
    chroot: str
    session_timeout_ms: int
    connection_timeout_ms: int
    max_in_flight_requests: int
    set_acl: bool
    tls: TlsConfig | None
    sasl: SaslLogin | None
    auth: tuple[str, str] | None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ZooKeeperClientConfig:
        """Read the `zookeeper.*` keys; all others are ignored.

        Raises:
            ConfigError: names the key, the value and what is allowed.
        """
        known = {k: v for k, v in properties.items() if k in ZOOKEEPER_CLIENT_CONFIGS.keys}
        values = ZOOKEEPER_CLIENT_CONFIGS.parse_all(known)
        hosts, chroot = parse_connect(_text(values, "zookeeper.connect") or "")
        session_timeout_ms = _int(values, "zookeeper.session.timeout.ms")
        _check_socket(_text(values, "zookeeper.clientCnxnSocket"))
        tls = _tls(values) if values["zookeeper.ssl.client.enable"] else None
        sasl = _login(_text(values, SASL_LOGIN)) or _login_of_file(values)
        auth = _auth(_text(values, AUTH))
        set_acl = bool(values["zookeeper.set.acl"])
        if set_acl and not (sasl or auth or (tls and tls.stores.get("ssl.keystore.location"))):
            raise ConfigError(
                "zookeeper.set.acl=true needs an identity towards ZooKeeper: set"
                " zookeeper.ssl.client.enable=true and zookeeper.ssl.keystore.location, or"
                f" {SASL_LOGIN}, or {AUTH}, or a JAAS file with a section Client"
            )
        return cls(
            hosts,
            chroot,
            session_timeout_ms,
            _int(values, "zookeeper.connection.timeout.ms", session_timeout_ms),
            _int(values, "zookeeper.max.in.flight.requests"),
            set_acl,
            tls,
            sasl,
            auth,
        )


def parse_connect(text: str) -> tuple[tuple[str, ...], str]:
    """`h1:2181,h2:2181/chroot` as addresses with ports and the chroot ("" for none).

    Raises:
        ConfigError: the text is not of that form.
    """
    addresses, slash, path = text.strip().partition("/")
    hosts = []
    for part in addresses.split(","):
        found = _ADDRESS.fullmatch(part.strip())
        if found is None or int(found[2] or DEFAULT_PORT) > 65535:
            raise ConfigError(
                f"Invalid value {text} for configuration zookeeper.connect:"
                f" '{part}' is not host:port; write h1:2181,h2:2181/chroot"
            )
        hosts.append(f"{found[1]}:{found[2] or DEFAULT_PORT}")
    parts = path.rstrip("/").split("/") if path.rstrip("/") else []
    if any(part in ("", ".", "..") for part in parts):
        raise ConfigError(
            f"Invalid value {text} for configuration zookeeper.connect:"
            f" '{slash}{path}' is not a znode path"
        )
    return tuple(hosts), "".join(f"/{part}" for part in parts)


def _check_socket(name: str | None) -> None:
    """Check the client socket class. Java's client needs Netty's for TLS; here both values are
    ignored.
    """
    if name not in (None, *CLIENT_SOCKETS):
        raise ConfigError(
            f"Invalid value {name} for configuration zookeeper.clientCnxnSocket: a Java class"
            f" cannot be loaded here; leave it out, or name one of {', '.join(CLIENT_SOCKETS)}"
        )


def _tls(values: Mapping[str, ConfigValue]) -> TlsConfig:
    if values["zookeeper.ssl.ocsp.enable"]:
        raise ConfigError(
            "zookeeper.ssl.ocsp.enable=true is not served: Python's TLS has no OCSP check;"
            " zookeeper.ssl.crl.enable is"
        )
    algorithm = (_text(values, "zookeeper.ssl.endpoint.identification.algorithm") or "").upper()
    if algorithm not in ("", "HTTPS"):
        raise ConfigError(
            f"Invalid value {algorithm} for configuration"
            " zookeeper.ssl.endpoint.identification.algorithm: it must be HTTPS or empty"
        )
    # Kafka's default is TLSv1.2 alone, which a ZooKeeper 3.9 server refuses.
    versions = _words(values, "zookeeper.ssl.enabled.protocols") or TLS_VERSIONS
    if (protocol := _text(values, "zookeeper.ssl.protocol")) is not None:
        versions = tuple(version for version in versions if version == protocol)
        if not versions:
            raise ConfigError(
                f"Invalid value {protocol} for configuration zookeeper.ssl.protocol:"
                " it is not one of zookeeper.ssl.enabled.protocols"
            )
    return TlsConfig(
        stores=_stores(values),
        versions=versions,
        ciphers=_words(values, "zookeeper.ssl.cipher.suites"),
        verify_host=algorithm == "HTTPS",
        check_revocation=bool(values["zookeeper.ssl.crl.enable"]),
    )


def _stores(values: Mapping[str, ConfigValue]) -> PrefixedProperties:
    """The properties of the stores, without the prefix `zookeeper.`. A private key has the password
    of its keystore.
    """
    found = {key: _text(values, key) for key in values if key.startswith(_STORES)}
    found[f"{_PREFIX}ssl.key.password"] = _text(values, f"{_PREFIX}ssl.keystore.password")
    found[ALLOW_SHA1] = "true" if values[ALLOW_SHA1] else None
    given = {key: text for key, text in found.items() if text is not None}
    return PrefixedProperties(given, (_PREFIX,))


def _login(text: str | None) -> SaslLogin | None:
    if text is None:
        return None
    line = _JAAS_LINE.fullmatch(text)
    options = dict(_JAAS_OPTION.findall(line[2])) if line else {}
    if line is None or line[1] != _DIGEST_LOGIN or not {"username", "password"} <= options.keys():
        raise ConfigError(
            f'{SASL_LOGIN} must read: {_DIGEST_LOGIN} required username="NAME" password="SECRET";'
        )
    return SaslLogin(*(re.sub(r"\\(.)", r"\1", options[k]) for k in ("username", "password")))


def _login_of_file(values: Mapping[str, ConfigValue]) -> SaslLogin | None:
    """The login in the JAAS file's section for ZooKeeper; None without such a section."""
    path, section = _text(values, LOGIN_CONFIG), _text(values, ZOOKEEPER_SECTION)
    file = jaas_file.read(path) if path else None
    if file is None or section is None or section not in file.sections:
        return None
    for module in file.sections[section]:
        if module.name == _DIGEST_LOGIN and {"username", "password"} <= module.options.keys():
            return SaslLogin(module.options["username"], module.options["password"])
    raise ConfigError(
        f"{file.path}: the section {section}, for ZooKeeper, must have {_DIGEST_LOGIN} required"
        ' username="NAME" password="SECRET";'
    )


def _auth(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    scheme, colon, credential = text.partition(":")
    if not scheme or not colon:
        raise ConfigError(f"{AUTH} must read scheme:credential, for example digest:NAME:SECRET")
    return scheme, credential


def _text(values: Mapping[str, ConfigValue], name: str) -> str | None:
    value = values[name]
    return value if isinstance(value, str) else None


def _words(values: Mapping[str, ConfigValue], name: str) -> tuple[str, ...]:
    value = values[name]
    return tuple(value) if isinstance(value, list) else ()


def _int(values: Mapping[str, ConfigValue], name: str, default: int = 0) -> int:
    value = values[name]
    return value if isinstance(value, int) else default

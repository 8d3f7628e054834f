"""A server's settings, from the properties of ZooKeeper's configuration file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.zk.service.permissions import BASE_SCHEMES, SASL, X509
from kafkapy.zk.wire.frames import MAX_BYTES

DATA_FILE: Final = "kafkapy-znodes"
"""The journal, in the data directory."""

TICK_MS: Final = 3000
MAX_CONNECTIONS: Final = 60
_INT_MAX: Final = (1 << 31) - 1

WORDS: Final = ("ruok", "srvr", "stat", "mntr", "cons", "wchs", "conf", "isro", "envi")
"""The four-letter words that can be served."""
_ALWAYS_SERVED: Final = frozenset({"srvr"})
"""Scripts use it to see whether a server is up. Apache's server adds it to each whitelist, too."""

_WHITELIST: Final = "4lw.commands.whitelist"

REQUIRE_SASL: Final = "sessionRequireClientSASLAuth"
"""Whether clients must log in before anything else."""

_PROVIDER: Final = "authProvider."
_PROVIDERS: Final = {
    "org.apache.zookeeper.server.auth.SASLAuthenticationProvider": SASL,
    "org.apache.zookeeper.server.auth.X509AuthenticationProvider": X509,
}

_USED_KEYS: Final = frozenset(
    (
        *(_WHITELIST, f"zookeeper.{_WHITELIST}"),
        *("clientPort", "clientPortAddress", "dataDir", "tickTime", "maxClientCnxns"),
        *("minSessionTimeout", "maxSessionTimeout", "jute.maxbuffer"),
        REQUIRE_SASL,
    )
)
_NO_USERS: Final = (
    "needs a JAAS file with a section Server: name it by KAFKA_OPTS, as"
    " -Djava.security.auth.login.config=FILE"
)
# Without these settings, the server would admit clients that the file excludes, or serve less than
# the file configures.
_REFUSED_PREFIXES: Final = {
    "server.": "this server is no member of an ensemble",
    "enforce.auth": f"this server has {REQUIRE_SASL}",
    "requireClientAuthScheme": f"Apache's server ignores it, and has {REQUIRE_SASL}",
    "ssl.ocsp": "Python's TLS has no OCSP check",
    "ssl.crl": "this server checks no revocation lists",
    "ssl.authProvider": "this server has the schemes digest, ip, sasl and x509 only",
    "ssl.clientHostnameVerification": "this server does not check the names of clients",
}


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The limits of a server. `max_connections` is per client address; 0 is no limit."""

    tick_ms: int = TICK_MS
    min_session_timeout_ms: int = 2 * TICK_MS
    max_session_timeout_ms: int = 20 * TICK_MS
    max_connections: int = MAX_CONNECTIONS
    max_frame_bytes: int = MAX_BYTES
    words: frozenset[str] = _ALWAYS_SERVED
    users: Mapping[str, str] = field(default_factory=dict)
    """Passwords of SASL DIGEST-MD5 by user. Without users, SASL is disabled."""
    requires_login: bool = False
    schemes: frozenset[str] = BASE_SCHEMES
    """The schemes that ACLs may name."""


def settings_from(
    properties: Mapping[str, str],
    users: Mapping[str, str] | None = None,
    has_client_certificates: bool = False,
) -> ServiceSettings:
    """The settings in a file's properties; `users` are those of the JAAS file.

    Raises:
        ConfigError: a value is wrong, or the file requires a feature that this server does not
            have.
    """
    schemes = {SASL: bool(users), X509: has_client_certificates}
    for key in properties:
        for prefix, reason in _REFUSED_PREFIXES.items():
            if key.startswith(prefix):
                raise ConfigError(
                    f"{key} has no effect here, for {reason}: start Apache ZooKeeper with"
                    " --implementation apache"
                )
    _check_providers(properties, schemes)
    requires_login = properties.get(REQUIRE_SASL, "false").strip().lower() == "true"
    if requires_login and not users:
        raise ConfigError(f"{REQUIRE_SASL}=true {_NO_USERS}")
    tick_ms = _number(properties, "tickTime", TICK_MS, 1)
    low_ms = _number(properties, "minSessionTimeout", -1, -1)
    high_ms = _number(properties, "maxSessionTimeout", -1, -1)
    low_ms = 2 * tick_ms if low_ms == -1 else low_ms
    high_ms = 20 * tick_ms if high_ms == -1 else high_ms
    if low_ms > high_ms:
        raise ConfigError(
            f"minSessionTimeout ({low_ms}) must not be larger than maxSessionTimeout ({high_ms})"
        )
    return ServiceSettings(
        tick_ms=tick_ms,
        min_session_timeout_ms=low_ms,
        max_session_timeout_ms=high_ms,
        max_connections=_number(properties, "maxClientCnxns", MAX_CONNECTIONS, 0),
        max_frame_bytes=_number(properties, "jute.maxbuffer", MAX_BYTES, 1),
        words=_words(properties),
        users=users or {},
        requires_login=requires_login,
        schemes=BASE_SCHEMES | {scheme for scheme, is_served in schemes.items() if is_served},
    )


def ignored_keys(properties: Mapping[str, str], used_keys: Collection[str] = ()) -> list[str]:
    """The keys that this server ignores; `used_keys` are the keys that its process reads."""
    ignored = properties.keys() - _USED_KEYS - set(used_keys)
    return sorted(key for key in ignored if not key.startswith(_PROVIDER))


def _check_providers(properties: Mapping[str, str], schemes: Mapping[str, bool]) -> None:
    """Refuse providers of schemes that are not served."""
    reasons = {SASL: _NO_USERS, X509: "needs secureClientPort, and ssl.clientAuth=want or need"}
    for key, name in properties.items():
        if key.startswith(_PROVIDER):
            scheme = _PROVIDERS.get(name.strip())
            if scheme is None or not schemes[scheme]:
                raise ConfigError(
                    f"{key}={name} {reasons[scheme] if scheme else 'cannot be loaded here'}"
                )


def _words(properties: Mapping[str, str]) -> frozenset[str]:
    """The words that the file allows; `*` is all that this server has."""
    text = properties.get(_WHITELIST, properties.get(f"zookeeper.{_WHITELIST}", ""))
    named = {word.strip() for word in text.split(",")}
    allowed = frozenset(WORDS) if "*" in named else frozenset(WORDS) & named
    return allowed | _ALWAYS_SERVED


def _number(properties: Mapping[str, str], key: str, default: int, minimum: int) -> int:
    text = properties.get(key, str(default)).strip()
    try:
        value = int(text)
    except ValueError:
        value = _INT_MAX + 1
    if not minimum <= value <= _INT_MAX:
        raise ConfigError(
            f"Invalid value {text} for configuration {key}: it must be a number of at least"
            f" {minimum}"
        )
    return value

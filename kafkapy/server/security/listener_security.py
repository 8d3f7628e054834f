"""The security of a listener: its TLS context, its SASL mechanisms and the names of its users.

All settings are created, and all errors raised, before anything starts.
`listener.name.<name>.<key>` has precedence over `<key>`, and
`listener.name.<name>.<mechanism>.<key>` over both.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_numbers import is_integer
from kafkapy.common.prefixed_properties import PrefixedProperties, of_listener
from kafkapy.protocol.sasl_authenticator import SaslMechanism
from kafkapy.security.kerberos.gss_context import MECHANISM as GSSAPI
from kafkapy.security.oauth.tokens import MECHANISM as OAUTHBEARER
from kafkapy.security.sasl.client import KNOWN_MECHANISMS, NONCE_BYTES
from kafkapy.security.sasl.jaas import USER_PREFIX, jaas_users
from kafkapy.security.sasl.scram import MECHANISMS
from kafkapy.security.sasl.server import PlainServer, SaslServer, ScramServer
from kafkapy.security.tls.distinguished_name import PrincipalMapper
from kafkapy.security.tls.stores import CLIENT_AUTH
from kafkapy.server.security import kerberos

if TYPE_CHECKING:
    from kafkapy.common.ports import Random
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.config.listeners import Listener
    from kafkapy.server.security.listener_tls import ListenerTls
    from kafkapy.server.security.oauth import OAuth
    from kafkapy.server.security.scram_credentials import ScramCredentials

logger = logging.getLogger("kafka.network.SocketServer")

PLAIN: Final = "PLAIN"
JAAS: Final = "sasl.jaas.config"

_KAFKAS: Final = "org.apache.kafka.common.security"
_SCRAM_HANDLER: Final = f"{_KAFKAS}.scram.internals.ScramServerCallbackHandler"
_SERVER_HANDLERS: Final[Mapping[str, str]] = {
    PLAIN: f"{_KAFKAS}.plain.internals.PlainServerCallbackHandler",
    GSSAPI: f"{_KAFKAS}.authenticator.SaslServerCallbackHandler",
    **dict.fromkeys(MECHANISMS, _SCRAM_HANDLER),
}
_LOGIN_HANDLER: Final = f"{_KAFKAS}.authenticator.AbstractLogin$DefaultLoginCallbackHandler"


class SaslSettings(NamedTuple):
    """SASL settings of a listener."""

    mechanisms: Mapping[str, SaslMechanism]
    receive_bytes_max: int
    failure_delay_s: float


class ListenerSecurity(NamedTuple):
    """The security of one listener. `tls` and `sasl` are None if its protocol does not use them."""

    tls: ListenerTls | None
    sasl: SaslSettings | None
    principals: PrincipalMapper


def mechanism_properties(config: KafkaConfig, listener: str, mechanism: str) -> PrefixedProperties:
    """The properties of one mechanism of a listener, of server.properties and the JAAS file."""
    prefix = f"listener.name.{listener.lower()}.{mechanism.lower()}."
    properties = of_listener(config.properties, listener).with_prefixes(prefix)
    if config.jaas is None:
        return properties
    found = config.jaas.at_listener(properties, listener, mechanism)
    if found is not properties and properties.get(JAAS) is not None:
        logger.warning(
            "Server config %s should be prefixed with SASL mechanism name, ignoring config; the"
            " JAAS file %s is used",
            properties.key(JAAS),
            config.jaas.path,
        )
    return found


def secured_listeners(
    config: KafkaConfig, credentials: ScramCredentials, random: Random, oauth: OAuth
) -> dict[str, ListenerSecurity]:
    """Security of each listener that is not PLAINTEXT, by name. Raises as `listener_security`."""
    return {
        listener.name: listener_security(config, listener, credentials, random, oauth)
        for listener in config.listeners
        if listener.security_protocol != "PLAINTEXT"
    }


def listener_security(
    config: KafkaConfig,
    listener: Listener,
    credentials: ScramCredentials,
    random: Random,
    oauth: OAuth,
) -> ListenerSecurity:
    """The security of a listener.

    Raises:
        ConfigError: names the listener, the property and what is wrong with it.
    """
    protocol = listener.security_protocol
    properties = of_listener(config.properties, listener.name)
    try:
        key = properties.key("ssl.principal.mapping.rules")
        principals = PrincipalMapper(properties.text("ssl.principal.mapping.rules"), key)
        tls = _tls(config, listener, properties) if protocol.endswith("SSL") else None
        sasl = None
        if protocol.startswith("SASL_"):
            sasl = _sasl(config, listener, properties, credentials, random, oauth)
    except ConfigError as error:
        raise ConfigError(f"listener {listener.name} ({protocol}): {error}") from error
    return ListenerSecurity(tls, sasl, principals)


def _tls(config: KafkaConfig, listener: Listener, properties: PrefixedProperties) -> ListenerTls:
    # Imported only when needed, with `ssl`.
    from kafkapy.server.security.listener_tls import ListenerTls

    key = properties.key("ssl.client.auth")
    client_auth = properties.text("ssl.client.auth", "none").lower()
    if client_auth not in CLIENT_AUTH:
        raise ConfigError(f"{key}={client_auth}: allowed are {', '.join(CLIENT_AUTH)}")
    if listener.security_protocol == "SASL_SSL" and key == "ssl.client.auth":
        client_auth = "none"  # KIP-684: for SASL_SSL only the listener's own config applies
    connects = listener.name == config.inter_broker_listener and not config.is_alone
    return ListenerTls(listener, config.properties, client_auth, connects)


def _sasl(
    config: KafkaConfig,
    listener: Listener,
    properties: PrefixedProperties,
    credentials: ScramCredentials,
    random: Random,
    oauth: OAuth,
) -> SaslSettings:
    key = properties.key("sasl.enabled.mechanisms")
    enabled = [name.upper() for name in properties.items("sasl.enabled.mechanisms", "GSSAPI")]
    served = [name for name in enabled if name in KNOWN_MECHANISMS]
    message = (
        f"{key}={','.join(enabled)}: served are {', '.join(KNOWN_MECHANISMS)}"
        if len(served) < len(enabled) or not enabled
        else ""
    )
    if not served:
        raise ConfigError(message)
    if message:
        logger.warning("Listener %s (%s): %s", listener.name, listener.security_protocol, message)
    mechanisms = {}
    for name in served:
        own = mechanism_properties(config, listener.name, name)
        lifetime_ms = own.text("connections.max.reauth.ms", "0")
        if not is_integer(lifetime_ms, 63):
            lifetime_key = own.key("connections.max.reauth.ms")
            raise ConfigError(f"{lifetime_key}={lifetime_ms} is not a number of milliseconds")
        if name != OAUTHBEARER:  # it has handlers to choose from
            _check_handler(own, name, "sasl.server.callback.handler.class", _SERVER_HANDLERS[name])
            _check_handler(own, name, "sasl.login.callback.handler.class", _LOGIN_HANDLER)
        begin: Callable[[], SaslServer]
        if name == PLAIN:
            begin = partial(_begin_plain, _plain_users(own))
        elif name == OAUTHBEARER:
            begin = oauth.server_factory(own)
        elif name == GSSAPI:
            begin = kerberos.server_factory(own)
        else:
            begin = partial(_begin_scram, name, credentials, random)
        mechanisms[name] = SaslMechanism(begin, max(0, int(lifetime_ms)))
    return SaslSettings(
        mechanisms,
        config.get_int("sasl.server.max.receive.size"),
        config.get_int("connection.failed.authentication.delay.ms") / 1000,
    )


def _check_handler(properties: PrefixedProperties, mechanism: str, name: str, served: str) -> None:
    """Refuse the class of a callback handler other than `served`, the default.

    The class decides which clients may log in. If it were ignored, the users in a forgotten JAAS
    entry could still log in. Without the mechanism's prefix, a class of Kafka may be for another
    mechanism.
    """
    key, handler = properties.key(name), properties.text(name).strip()
    is_prefixed = key.endswith(f".{mechanism.lower()}.{name}")
    is_for_another = not is_prefixed and handler.startswith(_KAFKAS)
    if handler and handler != served and not is_for_another:
        raise ConfigError(
            f"{key}={handler}: Java classes cannot be loaded; allowed for {mechanism} is {served}"
        )


def _plain_users(properties: PrefixedProperties) -> dict[str, str]:
    users = jaas_users(properties.text(JAAS))
    if not users:
        raise ConfigError(
            f"{properties.prefixes[0]}{JAAS} must name the users of PLAIN, for example:"
            " org.apache.kafka.common.security.plain.PlainLoginModule required"
            f' {USER_PREFIX}alice="secret";'
        )
    return users


def _begin_plain(users: Mapping[str, str]) -> SaslServer:
    return PlainServer(users)


def _begin_scram(name: str, credentials: ScramCredentials, random: Random) -> SaslServer:
    nonce = base64.b64encode(random.bytes(NONCE_BYTES)).decode()
    return ScramServer(
        MECHANISMS[name], credentials.lookup_for(name), nonce, credentials.token_lookup_for(name)
    )

"""Security of connections to other brokers: that of the inter-broker listener.

This broker is a client there, with the listener's own stores. It logs in as the `username` in the
JAAS config of the listener's users, as in Kafka.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import of_listener
from kafkapy.security.kerberos.gss_context import MECHANISM as GSSAPI
from kafkapy.security.oauth.tokens import MECHANISM as OAUTHBEARER
from kafkapy.security.sasl.client import KNOWN_MECHANISMS, NONCE_BYTES, Conversation, conversation
from kafkapy.security.sasl.jaas import Credentials, jaas_credentials
from kafkapy.server.security.kerberos import OwnLogin
from kafkapy.server.security.listener_security import JAAS, mechanism_properties

if TYPE_CHECKING:
    import ssl
    from concurrent.futures import Executor

    from kafkapy.common.ports import Random
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.security.listener_tls import ListenerTls
    from kafkapy.server.security.oauth import OAuth

MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"


class NodeSecurity(NamedTuple):
    """`tls` returns the context of each connection, `begin_login` a login with the broker at a
    host. They are None if the listener has none. If a login's first message blocks, it is made in
    `thread`. `check` tests whether a login is possible; it blocks too, and raises ConfigError."""

    tls: Callable[[], ssl.SSLContext] | None = None
    mechanism: str = ""
    begin_login: Callable[[str], Conversation] | None = None
    thread: Executor | None = None
    check: Callable[[], None] | None = None


PLAINTEXT: Final = NodeSecurity()


def node_security(
    config: KafkaConfig, random: Random, listener_tls: ListenerTls | None, oauth: OAuth
) -> NodeSecurity:
    """The security of the inter-broker listener, whose TLS is `listener_tls`. PLAINTEXT if there
    are no other brokers.

    Raises:
        ConfigError: names the property and what is wrong with it.
    """
    name = config.inter_broker_listener
    protocol = next(x.security_protocol for x in config.listeners if x.name == name)
    if config.is_alone or protocol == "PLAINTEXT":
        return PLAINTEXT
    properties = of_listener(config.properties, name)
    tls = None if listener_tls is None else listener_tls.connect_context
    try:
        if not protocol.startswith("SASL_"):
            return NodeSecurity(tls)
        mechanism = config.get_str(MECHANISM).upper()
        enabled = [item.upper() for item in properties.items("sasl.enabled.mechanisms", "GSSAPI")]
        if mechanism not in KNOWN_MECHANISMS:
            served = ", ".join(KNOWN_MECHANISMS)
            raise ConfigError(f"{MECHANISM}={mechanism} is not served; served are {served}")
        if mechanism not in enabled:
            key = properties.key("sasl.enabled.mechanisms")
            raise ConfigError(f"{MECHANISM}={mechanism} must be one of {key}={','.join(enabled)}")
        own = mechanism_properties(config, name, mechanism)
        if mechanism == OAUTHBEARER:
            begin = oauth.login_factory(own)
            return NodeSecurity(tls, mechanism, lambda _: begin())
        if mechanism == GSSAPI:
            login = OwnLogin(own)
            return NodeSecurity(tls, mechanism, login.begin, login.thread, login.check)
        credentials = jaas_credentials(own.text(JAAS), own.key_to_set(JAAS))
    except ConfigError as error:
        raise ConfigError(f"inter-broker listener {name} ({protocol}): {error}") from error
    return NodeSecurity(tls, mechanism, partial(_begin, mechanism, credentials, random))


async def check_login(security: NodeSecurity) -> None:
    """Check, before anything is served, that this broker can log in with others.

    Raises:
        ConfigError: it cannot; names the reason.
    """
    if security.check is not None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(security.thread, security.check)


def _begin(mechanism: str, credentials: Credentials, random: Random, _: str) -> Conversation:
    nonce = base64.b64encode(random.bytes(NONCE_BYTES)).decode()
    return conversation(mechanism, credentials, nonce, MECHANISM)

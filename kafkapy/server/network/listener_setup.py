"""Sets up the listeners of a starting broker, with their security and their run-time changes."""

from __future__ import annotations

import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkapy.server.network.acceptor import Acceptor
from kafkapy.server.network.listener_changes import ListenerChanges
from kafkapy.server.network.listener_set import ListenerSet
from kafkapy.server.security.listener_security import listener_security, secured_listeners
from kafkapy.server.security.node_security import NodeSecurity, node_security
from kafkapy.server.security.oauth import OAuth

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock, Random
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.config.listeners import Listener
    from kafkapy.server.network.connection_table import ConnectionTable
    from kafkapy.server.quotas.creation_rates import CreationRates
    from kafkapy.server.security.scram_credentials import ScramCredentials


class ListenerParts(NamedTuple):
    """The listeners of a broker, and the authentication for them and for other brokers."""

    acceptor: Acceptor
    changes: ListenerChanges
    oauth: OAuth
    node_security: NodeSecurity


def set_up_listeners(
    config: KafkaConfig,
    credentials: ScramCredentials,
    connections: ConnectionTable,
    creations: CreationRates,
    bind: Callable[[Listener], socket.socket],
    spawn: Callable[[Coroutine[Any, Any, None]], None],
    clock: Clock,
    random: Random,
) -> ListenerParts:
    """Set up the listeners of `config` with their security. Nothing is bound yet.

    Raises:
        ConfigError: names the listener, the property and what is wrong; nothing has changed.
    """
    oauth = OAuth(clock, random)
    security = secured_listeners(config, credentials, random, oauth)
    tls = {name: secured.tls for name, secured in security.items() if secured.tls is not None}
    inter_broker_tls = tls.get(config.inter_broker_listener)
    inter_broker_security = node_security(config, random, inter_broker_tls, oauth)
    acceptor = Acceptor(config, connections, clock, security, bind)
    create_security = partial(
        listener_security, credentials=credentials, random=random, oauth=oauth
    )
    names = [listener.name for listener in config.listeners]
    listeners = ListenerSet(config, acceptor, create_security, partial(oauth.start_added, spawn))
    creations.set_listeners(names)
    connections.limits.set_listeners(names, config.properties)
    changes = ListenerChanges(names, tls, listeners, spawn)
    return ListenerParts(acceptor, changes, oauth, inter_broker_security)

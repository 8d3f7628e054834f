"""The listeners of a broker that starts, with what secures and changes them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kafkapy.server.acceptor import Acceptor
from kafkapy.server.listener_changes import ListenerChanges
from kafkapy.server.listener_security import listener_security, secured_listeners
from kafkapy.server.listener_set import ListenerSet
from kafkapy.server.node_security import node_security
from kafkapy.server.oauth import OAuth

if TYPE_CHECKING:
    from kafkapy.common.ports import Random
    from kafkapy.server.connection_table import ConnectionTable
    from kafkapy.server.kafka_config import KafkaConfig
    from kafkapy.server.listeners import Listener
    from kafkapy.server.services import Services


def set_up_listeners(
    config: KafkaConfig,
    services: Services,
    random: Random,
    connections: ConnectionTable,
    bind: Callable[[Listener], socket.socket],
) -> Acceptor:
    """Have the listeners of `config`, as it secures them; nothing is bound yet.

    Raises:
        ConfigError: names the listener, the property and what is wrong; nothing has changed.
    """
    credentials = services.scram_credentials
    oauth = OAuth(services.clock, random)
    security = secured_listeners(config, credentials, random, oauth)
    tls = {name: secured.tls for name, secured in security.items() if secured.tls is not None}
    between = tls.get(config.inter_broker_listener)
    services.node_security = node_security(config, random, between, oauth)
    services.oauth = oauth
    acceptor = Acceptor(config, connections, services.clock, security, bind)
    secure = partial(listener_security, credentials=credentials, random=random, oauth=oauth)
    names = [listener.name for listener in config.listeners]
    listeners = ListenerSet(config, acceptor, secure, partial(oauth.go_on, services.spawn))
    services.listener_changes = ListenerChanges(names, tls, listeners, services.spawn)
    services.client_quotas.creations.have(names)
    services.connection_limits.have(names, config.properties)
    return acceptor

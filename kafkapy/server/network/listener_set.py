"""The listeners of a running broker (KIP-226, `DynamicListenerConfig`), from its configs
`listeners`, `advertised.listeners` and `listener.security.protocol.map` of the broker itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.metadata.dynamic_broker_configs import LISTENER_DEFINITIONS
from kafkapy.server.config.kafka_config import KafkaConfig

if TYPE_CHECKING:
    from kafkapy.common.cluster_state import Endpoint
    from kafkapy.server.config.listeners import Listener
    from kafkapy.server.network.acceptor import Acceptor
    from kafkapy.server.security.listener_security import ListenerSecurity

logger = logging.getLogger("kafka.server.DynamicBrokerConfig")

SecurityFactory = Callable[[KafkaConfig, "Listener"], "ListenerSecurity"]


class ListenerPlan(NamedTuple):
    """`kept` has the names of the listeners that remain, `secured` the security settings of new
    ones that are not PLAINTEXT, `names` all names after the change.
    """

    names: tuple[str, ...]
    kept: frozenset[str]
    security: Mapping[str, ListenerSecurity]
    change: Callable[[], Coroutine[Any, Any, None]]


class ListenerSet:
    """Fixed: the acceptor, a factory of security settings, and a condition to wait for before a new
    listener is served. `on_change` is called with all listeners and the endpoints to advertise.
    """

    def __init__(
        self,
        config: KafkaConfig,
        acceptor: Acceptor,
        create_security: SecurityFactory,
        prepare: Callable[[], Awaitable[None]],
    ) -> None:
        """`config` has the present listeners."""
        self._config = config
        self._acceptor = acceptor
        self._create_security = create_security
        self._prepare = prepare
        self._change_lock = asyncio.Lock()
        self.on_change: Callable[[KafkaConfig, tuple[Endpoint, ...]], Awaitable[None]] | None = None

    def plan(self, configs: Mapping[str, str]) -> ListenerPlan | None:
        """A plan for the listeners of these configs; None if nothing changes.

        Raises:
            ConfigError: the listeners are invalid, or cannot be changed while the broker runs.
        """
        current = self._config.properties
        if all(configs.get(key) == current.get(key) for key in LISTENER_DEFINITIONS):
            return None
        config = KafkaConfig(configs)
        old = {listener.name: listener for listener in self._config.listeners}
        added = [listener for listener in config.listeners if listener.name not in old]
        kept = [listener for listener in config.listeners if listener.name in old]
        for listener in kept:
            if listener.security_protocol != old[listener.name].security_protocol:
                raise ConfigError(
                    f"listener.security.protocol.map: the protocol of listener {listener.name}"
                    " cannot change while it is served"
                )
        if config.inter_broker_listener != self._config.inter_broker_listener:
            raise ConfigError(
                f"listeners: the inter-broker listener {self._config.inter_broker_listener} cannot"
                " be taken away while the broker runs"
            )
        security = {
            listener.name: self._create_security(config, listener)
            for listener in added
            if listener.security_protocol != "PLAINTEXT"
        }

        def change() -> Coroutine[Any, Any, None]:
            # Now, not in its turn: a later plan must not count on listeners that will be closed.
            self._config = config
            return self._change(config, security)

        names = tuple(listener.name for listener in config.listeners)
        return ListenerPlan(names, frozenset(x.name for x in kept), security, change)

    async def _change(self, config: KafkaConfig, security: Mapping[str, ListenerSecurity]) -> None:
        async with self._change_lock:
            await self._prepare()
            self._acceptor.change(config, security)
            logger.info("Listeners: %s", ", ".join(each.name for each in config.listeners))
            if self.on_change is not None:
                await self.on_change(config, self._acceptor.endpoints())

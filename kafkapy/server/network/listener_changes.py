"""Changes of listeners while the broker runs: they are added and removed, TLS stores are replaced
(`DynamicBrokerConfig`, `DynamicListenerConfig`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafkapy.common.errors import ConfigError
from kafkapy.metadata.dynamic_broker_configs import (
    check_values_of_listeners,
    keys_for_new_listeners,
    restart_only_keys,
)
from kafkapy.server.config.broker_config_table import NO_EFFECT
from kafkapy.server.config.kafka_config import BROKER_CONFIGS

if TYPE_CHECKING:
    from kafkapy.server.network.listener_set import ListenerPlan, ListenerSet
    from kafkapy.server.security.listener_tls import ListenerTls


logger = logging.getLogger("kafka.server.DynamicBrokerConfig")


class ListenerChanges:
    """Applies listener and TLS changes at run time. Fixed: the listener set, and a function that
    runs its changes in the background.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        tls: Mapping[str, ListenerTls] | None = None,
        listeners: ListenerSet | None = None,
        spawn: Callable[[Coroutine[Any, Any, None]], None] | None = None,
    ) -> None:
        self._names = tuple(names)
        self._tls = dict(tls or {})
        self._spawn = spawn
        self.listeners = listeners

    def load_stored(self, configs: Mapping[str, str]) -> None:
        """Load the stores that stored configs name, before the broker listens."""
        for tls in self._tls.values():
            try:
                stores = tls.read_if_changed(configs, check=False)
            except ConfigError as error:
                logger.error("%s; the stores of server.properties serve instead", error)
                continue
            if stores is not None:
                tls.replace(stores)

    def prepare(self, before: Mapping[str, str], after: Mapping[str, str]) -> Callable[[], None]:
        """Prepare a function that changes the listeners from the configs `before` to those `after`.

        All files are read now, so the returned function cannot fail.

        Raises:
            ConfigError: names the listener, the key or file, and what is wrong; nothing changed.
        """
        plan = None if self.listeners is None else self.listeners.plan(after)
        kept_names = self._names if plan is None else plan.kept
        check_values_of_listeners(self._names, before, after, BROKER_CONFIGS)
        fixed = restart_only_keys(kept_names, before, after)
        not_applied = [key for key in keys_for_new_listeners(before, after) if key not in NO_EFFECT]
        changed_stores = [
            (tls, stores)
            for name, tls in self._tls.items()
            if name in kept_names and (stores := tls.read_if_changed(after)) is not None
        ]

        def replace() -> None:
            if not_applied:
                logger.warning(
                    "Only listeners that are added have these before the broker restarts: %s",
                    ", ".join(not_applied),
                )
            for name, keys in fixed.items():
                logger.warning(
                    "Listener %s keeps what it has until the broker restarts: %s",
                    name,
                    ", ".join(keys),
                )
            for tls, stores in changed_stores:
                tls.replace(stores)
            if plan is not None:
                self._apply_plan(plan)

        return replace

    def _apply_plan(self, plan: ListenerPlan) -> None:
        self._names = plan.names
        kept_tls = {name: tls for name, tls in self._tls.items() if name in plan.kept}
        new = {name: each.tls for name, each in plan.security.items() if each.tls is not None}
        self._tls = kept_tls | new
        assert self._spawn is not None
        self._spawn(plan.change())

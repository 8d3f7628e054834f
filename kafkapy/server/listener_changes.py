"""What can change of the listeners while they are served: their TLS stores
(`DynamicBrokerConfig`, `DynamicListenerConfig`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from kafkapy.common.errors import ConfigError
from kafkapy.metadata.dynamic_broker_configs import refuse_fixed_of_listeners

if TYPE_CHECKING:
    from kafkapy.server.listener_tls import ListenerTls


logger = logging.getLogger("kafka.server.DynamicBrokerConfig")


class ListenerChanges:
    """Fixed: the names of the listeners, and the TLS of those that have it."""

    def __init__(self, names: Iterable[str] = (), tls: Iterable[ListenerTls] = ()) -> None:
        self._names = tuple(names)
        self._tls = tuple(tls)

    def begin(self, configs: Mapping[str, str]) -> None:
        """Have the stores that the configs named when this broker stopped, before it listens."""
        for tls in self._tls:
            try:
                stores = tls.renewed(configs, compared=False)
            except ConfigError as error:
                logger.error("%s; the stores of server.properties serve instead", error)
                continue
            if stores is not None:
                tls.replace(stores)

    def prepare(self, before: Mapping[str, str], after: Mapping[str, str]) -> Callable[[], None]:
        """What makes the broker's configs `after` those of the listeners, which were `before`.

        All files are read now: what is returned cannot fail.

        Raises:
            ConfigError: names the listener, the key or file, and what is wrong; nothing changed.
        """
        refuse_fixed_of_listeners(self._names, before, after)
        renewed = [(tls, stores) for tls in self._tls if (stores := tls.renewed(after)) is not None]

        def replace() -> None:
            for tls, stores in renewed:
                tls.replace(stores)

        return replace

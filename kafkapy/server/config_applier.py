"""Dynamic configs taking effect on this broker: logs first, for they hold most of them; then its
controller, which may elect leaders that it was not allowed to elect before."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ConfigError
from kafkapy.controller.events import UncleanElectionEnabled
from kafkapy.metadata.dynamic_passwords import without_passwords
from kafkapy.server.addresses import numeric_address, resolve
from kafkapy.server.ineffective_configs import warn_of_broker, warn_of_topic
from kafkapy.zk.paths import DEFAULT_ENTITY, desanitize

if TYPE_CHECKING:
    from kafkapy.replication.partition import Partition
    from kafkapy.server.dynamic_config import DynamicConfig
    from kafkapy.server.services import Services
    from kafkapy.storage.log_manager import LogManager

_UNCLEAN: Final = "unclean.leader.election.enable"

logger = logging.getLogger("kafka.server.DynamicConfigManager")


class ConfigApplier:
    """What the config change listener calls."""

    def __init__(self, configs: DynamicConfig, logs: LogManager, broker: Services) -> None:
        self._configs = configs
        self._logs = logs
        self._broker = broker

    def apply(self, entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        """Take over the configs of one entity.

        Raises:
            ConfigError: a value is not allowed; the old ones stay.
        """
        if entity_type == "topics":
            self._logs.update_topic_config(name, configs)
            self._configs.topic_overrides[name] = configs
            warn_of_topic(name, configs)
            self._recheck(self._broker.replicas.partitions.get(name, {}).values())
            if configs.get(_UNCLEAN, "").strip().lower() == "true":
                self._broker.controller.submit(UncleanElectionEnabled(name))
        elif entity_type == "brokers" and name in (DEFAULT_ENTITY, str(self._broker.broker_id)):
            self._apply_broker(name, self._broker.passwords.plain(configs))
            warn_of_broker(configs, dynamic=True)
            configs = without_passwords(configs)
        elif entity_type == "users":
            try:
                self._broker.scram_credentials.update(name, configs)
            finally:  # neither keeps the other from being taken over
                self._broker.client_quotas.update(entity_type, name, configs)
            return  # what it holds is not for the log
        elif entity_type == "clients":
            self._broker.client_quotas.update(entity_type, name, configs)
        elif entity_type == "ips":
            self._limit_address(name, configs)
        else:
            return
        logger.info("Processing override for %s '%s' with config %s", entity_type, name, configs)

    def _limit_address(self, name: str, configs: Mapping[str, str]) -> None:
        rates = self._broker.client_quotas.connections
        host = desanitize(name)
        address = None if name == DEFAULT_ENTITY else numeric_address(host)
        if address is not None or name == DEFAULT_ENTITY:
            rates.set(address, configs)
        else:
            self._broker.spawn(self._limit_host(host, configs))

    async def _limit_host(self, host: str, configs: Mapping[str, str]) -> None:
        """Names are looked up, once, when their configs are taken over."""
        address = await resolve(host)
        if address is None:
            logger.error("Cannot apply the configs of ips '%s': it has no address", host)
            return
        try:
            self._broker.client_quotas.connections.set(address, configs)
        except ConfigError as error:
            logger.error("Cannot apply the configs of ips '%s': %s", host, error)

    def _apply_broker(self, name: str, configs: Mapping[str, str]) -> None:
        before = self._configs.layers
        if name == DEFAULT_ENTITY:
            self._configs.set_broker_layers(default=configs)
        else:
            self._configs.set_broker_layers(broker=configs)
        layers = self._configs.layers
        change_listeners = None
        try:
            if name != DEFAULT_ENTITY:
                changes = self._broker.listener_changes
                change_listeners = changes.prepare(before.given(), layers.given())
            defaults = self._configs.log_defaults()
            quotas = self._broker.replicas.quotas
            quotas.set_rates({**layers.dynamic_default, **layers.dynamic_broker})
            self._broker.client_quotas.creations.update(layers.given())
            self._broker.connection_limits.update(layers.given())
            self._logs.update_broker_defaults(defaults)
        except ConfigError:
            self._configs.layers = before
            raise
        if change_listeners is not None:
            change_listeners()
        self._recheck(self._broker.replicas.all_partitions())
        self._broker.controller.allow_unclean_elections(bool(defaults.get(_UNCLEAN)))

    def _recheck(self, partitions: Iterable[Partition]) -> None:
        """`min.insync.replicas` may have moved the high watermark's bound."""
        for partition in list(partitions):
            self._broker.replicas.recheck(partition)

"""Applies dynamic configs on this broker: to logs first, which have most of the configs, and to the
controller last, which may then elect leaders that it was not allowed to elect before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafkapy.common.config_def import ConfigValue
from kafkapy.common.errors import ConfigError
from kafkapy.controller.events import UncleanElectionEnabled
from kafkapy.metadata.group_config import bounded_group_configs
from kafkapy.server.config.addresses import numeric_address, resolve
from kafkapy.server.config.ineffective_configs import (
    warn_of_broker_configs,
    warn_of_topic_configs,
    without_secrets,
)
from kafkapy.zk.stores.paths import DEFAULT_ENTITY, desanitize

if TYPE_CHECKING:
    from kafkapy.controller.events import Event
    from kafkapy.metadata.dynamic_passwords import DynamicPasswords
    from kafkapy.metadata.telemetry import ClientTelemetry
    from kafkapy.replication.partition import Partition
    from kafkapy.server.config.dynamic_config import DynamicConfig
    from kafkapy.server.network.connection_limits import ConnectionLimits
    from kafkapy.server.network.listener_changes import ListenerChanges
    from kafkapy.server.quotas.client_quotas import ClientQuotas
    from kafkapy.server.replicas.replica_manager import ReplicaManager
    from kafkapy.server.security.scram_credentials import ScramCredentials

_UNCLEAN_ELECTION_CONFIG: Final = "unclean.leader.election.enable"

logger = logging.getLogger("kafka.server.DynamicConfigManager")


class Controller(Protocol):
    """The methods of this broker's controller that configs need."""

    def submit(self, event: Event) -> None:
        """Queue an event."""

    def allow_unclean_elections(self, allowed: bool) -> None:
        """Set whether partitions may elect out-of-sync leaders, for topics that do not configure
        it.
        """


class ConfigApplier:
    """Applies configs for the config change listener."""

    def __init__(
        self,
        configs: DynamicConfig,
        passwords: DynamicPasswords,
        replicas: ReplicaManager,
        credentials: ScramCredentials,
        quotas: ClientQuotas,
        limits: ConnectionLimits,
        listeners: ListenerChanges,
        controller: Controller,
        telemetry: ClientTelemetry,
        configure_group: Callable[[str, Mapping[str, ConfigValue]], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._configs = configs
        self._passwords = passwords
        self._replicas = replicas
        self._logs = replicas.log_manager
        self._credentials = credentials
        self._quotas = quotas
        self._limits = limits
        self._listeners = listeners
        self._controller = controller
        self._telemetry = telemetry
        self._configure_group = configure_group
        self._spawn = spawn
        self._resolve_lock = asyncio.Lock()

    def apply(self, entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        """Apply the configs of one entity.

        Raises:
            ConfigError: a value is not allowed. The old configs stay in force.
        """
        if entity_type == "topics":
            self._logs.update_topic_config(name, configs)
            self._configs.topic_overrides[name] = configs
            warn_of_topic_configs(name, configs)
            self._recheck(self._replicas.partitions.get(name, {}).values())
            if configs.get(_UNCLEAN_ELECTION_CONFIG, "").strip().lower() == "true":
                self._controller.submit(UncleanElectionEnabled(name))
        elif entity_type == "brokers" and name in (DEFAULT_ENTITY, str(self._replicas.broker_id)):
            self._apply_broker(name, self._passwords.plain(configs))
            warn_of_broker_configs(configs, dynamic=True)
            configs = without_secrets(configs)
        elif entity_type == "users":
            try:
                self._credentials.update(name, configs)
            finally:  # an error of one does not prevent the other
                self._quotas.update(entity_type, name, configs)
            return  # credentials must not be logged
        elif entity_type == "clients":
            self._quotas.update(entity_type, name, configs)
        elif entity_type == "ips":
            self._set_address_limit(name, configs)
        elif entity_type == "client-metrics":
            self._telemetry.subscribe(desanitize(name), configs)
            self._configs.set_client_metrics(desanitize(name), configs)
        elif entity_type == "groups":
            own = bounded_group_configs(configs, self._configs.layers)
            self._configure_group(desanitize(name), own)
            self._configs.set_group(desanitize(name), configs)
        else:
            return
        logger.info("Processing override for %s '%s' with config %s", entity_type, name, configs)

    def _set_address_limit(self, name: str, configs: Mapping[str, str]) -> None:
        rates = self._quotas.connections
        host = desanitize(name)
        address = None if name == DEFAULT_ENTITY else numeric_address(host)
        if address is not None or name == DEFAULT_ENTITY:
            rates.set(address, configs)
        else:
            self._spawn(self._set_host_limit(host, configs))

    async def _set_host_limit(self, host: str, configs: Mapping[str, str]) -> None:
        """Resolve a host name once, when its configs are applied. Look-ups run one after the other,
        so that no older config replaces a newer one.
        """
        async with self._resolve_lock:
            address = await resolve(host)
            if address is None:
                logger.error("Cannot apply the configs of ips '%s': it has no address", host)
                return
            try:
                self._quotas.connections.set(address, configs)
            except ConfigError as error:
                logger.error("Cannot apply the configs of ips '%s': %s", host, error)

    def _apply_broker(self, name: str, configs: Mapping[str, str]) -> None:
        old_layers = self._configs.layers
        if name == DEFAULT_ENTITY:
            self._configs.set_broker_layers(default=configs)
        else:
            self._configs.set_broker_layers(broker=configs)
        layers = self._configs.layers
        change_listeners = None
        try:
            if name != DEFAULT_ENTITY:
                changes = self._listeners
                change_listeners = changes.prepare(old_layers.configured(), layers.configured())
            defaults = self._configs.log_defaults()
            quotas = self._replicas.quotas
            quotas.set_rates({**layers.dynamic_default, **layers.dynamic_broker})
            self._quotas.creations.update(layers.configured())
            self._limits.update(layers.configured())
            self._logs.update_broker_defaults(defaults)
        except ConfigError:
            self._configs.layers = old_layers
            raise
        if change_listeners is not None:
            change_listeners()
        self._recheck(self._replicas.all_partitions())
        self._controller.allow_unclean_elections(bool(defaults.get(_UNCLEAN_ELECTION_CONFIG)))

    def _recheck(self, partitions: Iterable[Partition]) -> None:
        """Update high watermarks: a change of `min.insync.replicas` may have moved their bound."""
        for partition in list(partitions):
            self._replicas.update_high_watermark(partition)

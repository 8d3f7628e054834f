"""Alters configs of topics, brokers, client metrics and groups (AlterConfigs,
IncrementalAlterConfigs).

The checks, their order and messages are those of `kafka.server.ZkAdminManager` and
`ConfigAdminManager`. Then the entity's znode is written, with a notification after which every
broker reads the znode. The cluster must have a controller, but any broker can make the change. Only
the broker itself can change its own configs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Final

from kafkapy.common.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    ResourceType,
    format_value,
)
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_configs import TOPIC_CONFIGS, validate_topic_configs
from kafkapy.common.topic_partition import validate_topic_name
from kafkapy.metadata.cache import MetadataCache
from kafkapy.metadata.client_metrics import (
    CLIENT_METRICS_CONFIGS,
    InvalidRequest,
    parse_subscription,
)
from kafkapy.metadata.dynamic_broker_configs import validate_dynamic_configs
from kafkapy.metadata.dynamic_passwords import DynamicPasswords
from kafkapy.metadata.group_config import GROUP_CONFIGS, validate_group_configs
from kafkapy.metadata.topic_config import BrokerConfigLayers
from kafkapy.security.password_encoder import is_password
from kafkapy.server.config.kafka_config import check_values
from kafkapy.zk.stores.config_store import until_unchanged
from kafkapy.zk.stores.paths import DEFAULT_ENTITY, sanitize
from kafkapy.zk.stores.store import ControllerMoved, ZkStore
from kafkapy.zk.zookeeper import ANY_VERSION

_log = logging.getLogger("kafka.server.ZkAdminManager")


class AlterOp(IntEnum):
    """IncrementalAlterConfigs' operations."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OPERATIONS: Final = frozenset(AlterOp)

_DEFINITIONS_BY_TYPE: Final[Mapping[str, ConfigDef]] = {
    "topics": TOPIC_CONFIGS,
    "client-metrics": CLIENT_METRICS_CONFIGS,
    "groups": GROUP_CONFIGS,
}
"""Config definitions by entity type. Those of brokers come from `layers`."""

# (name, AlterOp, value); DELETE needs no value.
ConfigOp = tuple[str, int, str | None]


class ConfigAdmin:
    """Config changes on one broker; every refusal is an ApiError."""

    def __init__(
        self,
        store: ZkStore,
        change_lock: asyncio.Lock,
        metadata: MetadataCache,
        layers: Callable[[], BrokerConfigLayers],
        broker_id: int,
        current: Callable[[], Mapping[str, ConfigValue]],
        check_own: Callable[[Mapping[str, str]], object],
        passwords: DynamicPasswords,
    ) -> None:
        """`change_lock` is held from reading an entity's configs until they are written. Otherwise,
        of two concurrent requests, the second would undo the changes of the first.

        `layers` returns this broker's configs. `current` returns the values in force of the configs
        that are set; they bound the steps of thread counts. `check_own` raises ConfigError if the
        values are not allowed as this broker's own configs.
        """
        self._passwords = passwords
        self._store = store
        self._change_lock = change_lock
        self._metadata = metadata
        self._layers = layers
        self._broker_id = broker_id
        self._current = current
        self._check_own = check_own

    async def replace(
        self,
        resource_type: int,
        name: str,
        configs: Mapping[str, str | None],
        validate_only: bool = False,
    ) -> None:
        """Replace all dynamic configs of a resource (the broker "" is the cluster-wide default).

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION; INVALID_CONFIG (unknown, bad value);
                INVALID_REQUEST (of a broker: not dynamic, bad value, not this broker; null value,
                other resources);
                STALE_CONTROLLER_EPOCH when there is no controller.
        """
        nulls = [key for key, value in configs.items() if value is None]
        if nulls:
            raise _null_value_error(nulls)
        given = {key: value for key, value in configs.items() if value is not None}
        entity_type, entity = self._entity(resource_type, name)
        async with self._change_lock:
            await self._set(entity_type, entity, given, validate_only)

    async def change(
        self,
        resource_type: int,
        name: str,
        ops: Sequence[ConfigOp],
        validate_only: bool = False,
    ) -> None:
        """Change some dynamic configs of a resource. Raises as `replace`."""
        check_ops(ops)
        entity_type, entity = self._entity(resource_type, name)

        async def attempt() -> None:
            configs, version = await self._store.configs.get_versioned(entity_type, entity)
            if entity_type == "brokers":
                configs = self._passwords.plain(configs)
            definitions = _DEFINITIONS_BY_TYPE.get(entity_type, self._layers().definitions)
            changed = _apply_ops(configs, ops, definitions)
            await self._set(entity_type, entity, changed, validate_only, version)

        async with self._change_lock:
            await until_unchanged(attempt)

    async def _set(
        self,
        entity_type: str,
        entity: str,
        configs: Mapping[str, str],
        validate_only: bool,
        version: int = ANY_VERSION,
    ) -> None:
        if entity_type == "topics":
            self._check_topic(entity, configs)
        elif entity_type == "brokers":
            configs = self._check_broker(entity, configs)
        else:
            self._check_group_or_client_metrics(entity_type, configs)
        if validate_only:
            return
        # Names only: a plug-in's own keys may hold secrets.
        _log.info("Updating %s %s with new configuration : %s", entity_type, entity, list(configs))
        try:
            await self._store.configs.set(entity_type, entity, configs, version)
        except ControllerMoved as moved:
            raise ApiError(ErrorCode.STALE_CONTROLLER_EPOCH, str(moved)) from moved

    def _check_topic(self, topic: str, configs: Mapping[str, str]) -> None:
        validate_topic_name(topic)
        if self._metadata.image.topic(topic) is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist."
            )
        for key in configs:
            if key not in TOPIC_CONFIGS.keys:
                # As in Kafka, the message of this error does not name the resource.
                raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {key}")
        try:
            validate_topic_configs(configs)
        except ConfigError as error:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Invalid config value for resource ConfigResource(type=TOPIC, name='{topic}'):"
                f" {error}",
            ) from error

    def _check_group_or_client_metrics(self, entity_type: str, configs: Mapping[str, str]) -> None:
        try:
            if entity_type == "groups":
                validate_group_configs(configs, self._layers())
            else:
                parse_subscription(configs)
        except InvalidRequest as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def _check_broker(self, entity: str, configs: Mapping[str, str]) -> Mapping[str, str]:
        """Check a broker's configs. Returns them in the form to store."""
        per_broker = entity != DEFAULT_ENTITY
        layers = self._layers()
        try:
            validate_dynamic_configs(
                configs, layers.definitions, per_broker=per_broker, current=self._current()
            )
            if per_broker:
                changed = replace(layers, dynamic_broker=configs)
            else:
                changed = replace(layers, dynamic_default=configs)
            check_values(changed.configured())
            if per_broker:
                stored = self._passwords.encoded(configs)
                self._check_own(configs)
            elif any(map(is_password, configs)):
                raise ConfigError("Password config can be defined only at broker level")
            else:
                stored = dict(configs)
        except ConfigError as error:
            # As in Kafka, only errors of topics name the resource and have INVALID_CONFIG.
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
        return stored

    def _entity(self, resource_type: int, name: str) -> tuple[str, str]:
        """The entity type and name of a resource in ZooKeeper."""
        if resource_type == ResourceType.TOPIC:
            return "topics", name
        if resource_type == ResourceType.BROKER:
            return "brokers", self._broker_entity(name)
        if resource_type == ResourceType.CLIENT_METRICS:
            if not name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
            return "client-metrics", sanitize(name)
        if resource_type == ResourceType.GROUP:
            if not name:
                message = "Default group resources are not allowed."
                raise ApiError(ErrorCode.INVALID_REQUEST, message)
            return "groups", sanitize(name)
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "AlterConfigs is only supported for topics and brokers, but resource type is"
            f" {resource_type}",
        )

    def _broker_entity(self, broker: str) -> str:
        if not broker:
            return DEFAULT_ENTITY
        check_broker_id(broker, self._broker_id)
        return str(self._broker_id)


def check_broker_id(broker: str, broker_id: int) -> None:
    """Refuse a resource that is not the broker `broker_id`.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    try:
        named = int(broker)
    except ValueError:
        message = f"Node id must be an integer, but it is: {broker}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message) from None
    # Not 01 or " 1": one request could name this broker, and get its configs, any number of times.
    if named != broker_id or broker != str(broker_id):
        message = f"Unexpected broker id, expected {broker_id}, but received {broker}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


def _null_value_error(names: Sequence[str]) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(names)}")


def check_ops(ops: Sequence[ConfigOp]) -> None:
    """Refuse operations on one config twice, unknown operations, and null values.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    names = [name for name, _, _ in ops]
    duplicates = sorted(name for name, count in Counter(names).items() if count > 1)
    if duplicates:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Error due to duplicate config keys : {','.join(duplicates)}",
        )
    unknown = [op for _, op, _ in ops if op not in _OPERATIONS]
    if unknown:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown config operation {unknown[0]}")
    nulls = [
        f"{AlterOp(op).name}:{name}"
        for name, op, value in ops
        if value is None and op != AlterOp.DELETE
    ]
    if nulls:
        raise _null_value_error(nulls)


def _apply_ops(
    configs: Mapping[str, str], ops: Sequence[ConfigOp], definitions: ConfigDef
) -> dict[str, str]:
    changed = dict(configs)
    for name, op, value in ops:
        if op == AlterOp.DELETE:
            changed.pop(name, None)
        elif op == AlterOp.SET:
            changed[name] = value or ""
        else:
            changed[name] = _merge_list(changed, name, AlterOp(op), value or "", definitions)
    return changed


def _merge_list(
    configs: Mapping[str, str], name: str, op: AlterOp, value: str, definitions: ConfigDef
) -> str:
    """A list config with members added or removed. Without an override, the list is the default."""
    key = definitions.keys.get(name)
    if key is None or key.type is not ConfigType.LIST:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Config value {op.name.lower()} is not allowed for config key: {name}",
        )
    old = _items(configs.get(name, format_value(key.default) or ""))
    given = _items(value)
    if op is AlterOp.APPEND:
        present = set(old)
        return ",".join(old + [item for item in given if item not in present])
    removed = set(given)
    return ",".join(item for item in old if item not in removed)


def _items(text: str) -> list[str]:
    return [item for item in text.split(",") if item]

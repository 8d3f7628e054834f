"""Dynamic configs of topics and brokers: describe, and alter key by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafkapy.admin.batches import batches
from kafkapy.admin.errors import api_error, check
from kafkapy.client.cluster import Cluster
from kafkapy.common.config_def import ConfigSource, ResourceType
from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkapy.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkapy.protocol.messages.list_config_resources import ListConfigResourcesRequest

_SET: Final = 0
_DELETE: Final = 1


_DYNAMIC_SOURCE: Final[dict[ResourceType, int]] = {
    ResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ResourceType.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    ResourceType.CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    ResourceType.GROUP: ConfigSource.DYNAMIC_GROUP_CONFIG,
}


class Resource(NamedTuple):
    """The resource that configs belong to; the empty broker name is the default of all brokers."""

    type: ResourceType
    name: str

    @property
    def broker_id(self) -> int | None:
        """The broker that has the resource's configs; None if every broker has them."""
        is_per_broker = self.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and self.name
        return int(self.name) if is_per_broker else None


class Synonym(NamedTuple):
    """A possible source of a value."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """One effective config. `value` is None if it is sensitive."""

    name: str
    value: str | None
    source: int
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[Synonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source == ConfigSource.DEFAULT_CONFIG


def describe_configs(
    cluster: Cluster, resources: Iterable[Resource], *, synonyms: bool = True
) -> dict[Resource, list[ConfigEntry]]:
    """The configs of resources. A broker's configs are requested from that broker.

    Raises:
        ApiError: the first refusal.
    """
    found, refusal = describe_configs_partly(cluster, resources, synonyms=synonyms)
    if refusal is not None:
        raise refusal
    return found


def describe_configs_partly(
    cluster: Cluster, resources: Iterable[Resource], *, synonyms: bool = True
) -> tuple[dict[Resource, list[ConfigEntry]], ApiError | None]:
    """The configs of resources as far as the brokers return them, and the first refusal."""
    found: dict[Resource, list[ConfigEntry]] = {}
    refusals: list[ApiError] = []
    for broker_id, group in _by_broker(resources).items():
        rows = [DescribeConfigsResource(resource_type=r.type, resource_name=r.name) for r in group]
        request = DescribeConfigsRequest(resources=rows, include_synonyms=synonyms)
        try:
            response = cluster.request(request, broker_id=broker_id)
        except ApiError as error:
            refusals.append(error)
            continue
        for result in response.results:
            if result.error_code:
                refusals.append(api_error(result.error_code, result.error_message))
                continue
            resource = Resource(ResourceType(result.resource_type), result.resource_name)
            found[resource] = [_entry(config, resource) for config in result.configs]
    return found, refusals[0] if refusals else None


def dynamic_only(entries: Iterable[ConfigEntry], resource: Resource) -> list[ConfigEntry]:
    """The entries that are set dynamically for exactly this resource; for a logger, all entries."""
    if resource.type is ResourceType.BROKER_LOGGER:
        return list(entries)
    if resource.type is ResourceType.BROKER and not resource.name:
        source: int = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    else:
        source = _DYNAMIC_SOURCE[resource.type]
    return [entry for entry in entries if entry.source == source]


def client_metrics_names(cluster: Cluster) -> list[str]:
    """The subscriptions to clients' metrics, sorted.

    Raises:
        ApiError: the broker refused, or does not have the API (UNSUPPORTED_VERSION: Apache Kafka
            in ZooKeeper mode).
    """
    return _names(cluster, ResourceType.CLIENT_METRICS, 0)


def group_names(cluster: Cluster) -> list[str]:
    """The groups that have configs, sorted.

    Raises:
        ApiError: the broker refused, or is older than Kafka 4.1 (UNSUPPORTED_VERSION).
    """
    return _names(cluster, ResourceType.GROUP, 1)


def _names(cluster: Cluster, kind: ResourceType, min_version: int) -> list[str]:
    """Names of resources; version 0 has client metrics only."""
    request = ListConfigResourcesRequest(resource_types=[kind])
    response = cluster.request(request, min_version=min_version)
    check(response.error_code)
    return sorted(
        each.resource_name for each in response.config_resources if each.resource_type == kind
    )


class ConfigChanges(NamedTuple):
    """Keys to set and keys to delete."""

    sets: Mapping[str, str]
    deletes: Sequence[str] = ()


def incremental_alter_configs(
    cluster: Cluster, resource: Resource, sets: Mapping[str, str], deletes: Sequence[str]
) -> None:
    """Set some keys and delete others (KIP-339).

    Raises:
        ApiError: the reason why nothing was changed.
    """
    alter_many_configs(cluster, {resource: ConfigChanges(sets, deletes)})


def alter_many_configs(cluster: Cluster, changes: Mapping[Resource, ConfigChanges]) -> None:
    """Set and delete keys of many resources. Each broker gets the requests for its own configs.
    After a refusal, the remaining requests are still sent.

    Raises:
        ApiError: the first refusal; other resources may be changed.
    """
    refusals: list[ApiError] = []
    for broker_id, group in _by_broker(changes).items():
        for batch in batches(group):
            resources = [
                AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=_operations(changes[resource]),
                )
                for resource in batch
            ]
            request = IncrementalAlterConfigsRequest(resources=resources)
            try:
                for result in cluster.request(request, broker_id=broker_id).responses:
                    check(result.error_code, result.error_message)
            except ApiError as error:
                refusals.append(error)
    if refusals:
        raise refusals[0]


def _operations(change: ConfigChanges) -> list[AlterableConfig]:
    return [
        AlterableConfig(name=name, config_operation=_SET, value=value)
        for name, value in change.sets.items()
    ] + [
        AlterableConfig(name=name, config_operation=_DELETE, value=None) for name in change.deletes
    ]


def _by_broker(resources: Iterable[Resource]) -> dict[int | None, list[Resource]]:
    groups: dict[int | None, list[Resource]] = {}
    for resource in resources:
        groups.setdefault(resource.broker_id, []).append(resource)
    return groups


def _entry(config: Any, resource: Resource) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        _source(config, resource),
        config.is_sensitive,
        config.read_only,
        tuple(Synonym(s.name, s.value, s.source) for s in config.synonyms),
    )


def _source(config: Any, resource: Resource) -> int:
    """The source of a config. Version 0 (Kafka 0.11 and 1.0) only tells defaults from other values;
    the rest is as in Kafka's `DescribeConfigsResponse`.
    """
    if config.config_source >= 0:
        return int(config.config_source)
    if config.is_default:
        return ConfigSource.DEFAULT_CONFIG
    if resource.type is ResourceType.BROKER:
        return ConfigSource.STATIC_BROKER_CONFIG
    return ConfigSource.DYNAMIC_TOPIC_CONFIG

"""DescribeConfigs (key 32), versions 0-4.

Behaviour: effective values with their source and synonyms, for topics, this broker, the
cluster-wide default, client metrics, groups, and the levels of this broker's loggers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kafkapy.common.config_def import ConfigSource, ResourceType
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import quoted, validate_topic_name
from kafkapy.metadata.cache import MetadataCache
from kafkapy.metadata.topic_config import ConfigEntry
from kafkapy.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kafkapy.server.admin.broker_loggers import BrokerLoggers
from kafkapy.server.api.handler_support import distinct
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.server.config.config_documentation import broker_text, topic_text
from kafkapy.server.config.dynamic_config import DynamicConfig
from kafkapy.server.requests.turns import ROW_UNITS, SliceScheduler, chunks

logger = logging.getLogger("kafka.server.ConfigHelper")

DEFAULTS_MAX: Final = 10_000
"""The limit of groups and client metrics without configs in one request. For a name of a few bytes,
the response has some KiB of defaults."""


@dataclass(frozen=True)
class Handler:
    """Describes configs in force."""

    configs: DynamicConfig
    changes: ConfigChangeListener
    metadata: MetadataCache
    broker_id: int
    loggers: BrokerLoggers
    slices: SliceScheduler

    async def handle(
        self, context: RequestContext, request: DescribeConfigsRequest
    ) -> DescribeConfigsResponse:
        """Describe each resource."""
        # A change through another broker or a znode must be visible to the next request.
        resources = distinct(request.resources, lambda r: (r.resource_type, r.resource_name))
        pace = self.slices.pace()
        stored_configs = await self.changes.catch_up(
            self._topics_without_replica(resources), pace.charge
        )
        results, defaults = [], 0
        for resource in resources:
            row = DescribeConfigsResult(
                error_message="",
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            results.append(row)
            keys: set[str] = set()
            for few in chunks(resource.configuration_keys or ()):
                keys.update(few)
                await pace.charge(len(few))
            defaults += self.configs.has_defaults_only(row.resource_type, row.resource_name)
            try:
                if defaults > DEFAULTS_MAX:
                    raise _too_many_resources()
                # no keys: all configs
                entries = self._entries(resource, stored_configs, keys or None)
                row.configs = _configs(entries, resource, request)
            except ApiError as error:
                row.error_code = error.code
                row.error_message = error.own_message or ""
            except ConfigError as error:  # an invalid value in ZooKeeper, which no request can set
                name = quoted(resource.resource_name)
                logger.error("Cannot describe the configs of %s: %s", name, error)
                row.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
            await pace.charge(ROW_UNITS * (1 + len(row.configs)))
        return DescribeConfigsResponse(results=results)

    def _topics_without_replica(self, resources: Iterable[DescribeConfigsResource]) -> list[str]:
        """The topics of which this broker has no replica."""
        topics = self.metadata.image.topics
        return [
            resource.resource_name
            for resource in resources
            if resource.resource_type == ResourceType.TOPIC
            and (topic := topics.get(resource.resource_name)) is not None
            and not any(self.broker_id in p.replicas for p in topic.partitions.values())
        ]

    def _entries(
        self,
        resource: DescribeConfigsResource,
        stored_configs: Mapping[str, Mapping[str, str]],
        keys: set[str] | None,
    ) -> list[ConfigEntry]:
        name = resource.resource_name
        if resource.resource_type == ResourceType.TOPIC:
            validate_topic_name(name)
            if name not in self.metadata.image.topics:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return self.configs.topic(name, stored_configs.get(name), keys)
        if resource.resource_type == ResourceType.BROKER:
            if name == "":
                return self.configs.broker_defaults(keys)
            if name != str(self.broker_id):
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"Unexpected broker id, expected {self.broker_id} or empty string, but received"
                    f" {name}",
                )
            return self.configs.broker(keys)
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            return self.loggers.entries(name, keys)
        if resource.resource_type == ResourceType.CLIENT_METRICS:
            if not name:
                message = "Client metrics subscription name must not be empty"
                raise ApiError(ErrorCode.INVALID_REQUEST, message)
            return self.configs.client_metrics(name, keys)
        if resource.resource_type == ResourceType.GROUP:
            if not name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
            return self.configs.group(name, keys)
        message = f"Unsupported resource type: {resource.resource_type}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


def _too_many_resources() -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST,
        f"A request may describe at most {DEFAULTS_MAX} groups and client metrics without configs",
    )


def _configs(
    entries: list[ConfigEntry], resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    rows = [_row(entry, request.include_synonyms) for entry in entries]
    if request.include_documentation:
        is_broker = resource.resource_type == ResourceType.BROKER
        text_of = broker_text if is_broker else topic_text
        for row, entry in zip(rows, entries, strict=True):
            row.documentation = entry.documentation or text_of(entry.name)
    return rows


def _row(entry: ConfigEntry, synonyms: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.source is ConfigSource.DEFAULT_CONFIG,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source)
            for s in entry.synonyms
        ]
        if synonyms
        else [],
        config_type=entry.config_type or 0,
    )


def refuse(
    request: DescribeConfigsRequest, error: ApiError, version: int
) -> DescribeConfigsResponse:
    """The same error for every resource."""
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                error_code=error.code,
                error_message=error.message,
                resource_type=r.resource_type,
                resource_name=r.resource_name,
            )
            for r in request.resources
        ]
    )

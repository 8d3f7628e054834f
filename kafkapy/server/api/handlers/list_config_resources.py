"""ListConfigResources (key 74), versions 0-1.

Behaviour: the topics and brokers of the cluster, and the client metrics and groups that have
configs. Version notes: v0, ListClientMetricsResources, has client metrics only (KIP-714); v1 has
the requested types, or all (KIP-1142).
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ErrorCode
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.server.config.dynamic_config import DynamicConfig


async def handle(
    configs: DynamicConfig,
    changes: ConfigChangeListener,
    metadata: MetadataCache,
    context: RequestContext,
    request: ListConfigResourcesRequest,
) -> ListConfigResourcesResponse:
    """List resources."""
    await changes.catch_up()
    served = set(ResourceType) if context.version >= 1 else {ResourceType.CLIENT_METRICS}
    kinds = set(request.resource_types) or served
    if not kinds <= served:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in sorted(ResourceType, reverse=True)
            if kind in kinds
            for name in _names(kind, configs, metadata)
        ]
    )


def _names(kind: ResourceType, configs: DynamicConfig, metadata: MetadataCache) -> Iterable[str]:
    if kind is ResourceType.TOPIC:
        return metadata.image.topics
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return map(str, metadata.image.brokers)
    return configs.names(kind)

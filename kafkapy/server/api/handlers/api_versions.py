"""ApiVersions (key 18), versions 0-5.

Behaviour: lists the APIs of `handlers.SERVED`, without those of disabled features. The response to
an unsupported version is UNSUPPORTED_VERSION in v0, with the versions of this API only (KIP-511),
so that the client retries. A client that expects another broker or cluster gets
REBOOTSTRAP_REQUIRED. Version notes: v3 has the client's software name, and the features; v5 the
cluster and the broker that the client expects (KIP-1242); the response header stays v0 at every
version.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.client_software import has_valid_software_name
from kafkapy.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafkapy.server.api.cluster_view import ClusterView
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.served import AnyApi
from kafkapy.server.cluster.cluster_features import ClusterFeatures

_CONSUMER_GROUP_APIS = frozenset({ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE})
_SHARE_GROUP_APIS = frozenset(
    {
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    }
)


def handle(
    served: Mapping[int, AnyApi],
    cluster: ClusterView,
    features: ClusterFeatures,
    context: RequestContext,
    request: ApiVersionsRequest | None,
) -> ApiVersionsResponse:
    """List the served APIs. `request` is None if its version is unknown."""
    if request is None:
        this_api = served[ApiKey.API_VERSIONS]
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[
                ApiVersion(
                    api_key=ApiKey.API_VERSIONS,
                    min_version=this_api.min_version,
                    max_version=this_api.max_version,
                )
            ],
        )
    if not has_valid_software_name(request, context.version):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if _expects_another_broker(cluster, request):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    if context.version >= 3 and context.caller is not None:
        software = request.client_software_name, request.client_software_version
        context.caller.client_software = software
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=row.min_version, max_version=row.max_version)
            for key, row in sorted(served.items())
            if (key not in _CONSUMER_GROUP_APIS or features.has_consumer_groups)
            and (key not in _SHARE_GROUP_APIS or features.has_share_groups)
        ],
        supported_features=[
            SupportedFeatureKey(
                name=feature.name,
                min_version=feature.min_version,
                max_version=feature.max_version,
            )
            for feature in features.supported
        ],
        finalized_features_epoch=features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in features.levels.items()
        ],
    )


def _expects_another_broker(cluster: ClusterView, request: ApiVersionsRequest) -> bool:
    """Whether the client expects another broker or cluster. As in Kafka, the node id is checked
    only together with a cluster id.
    """
    expected = request.cluster_id, request.node_id
    return request.cluster_id is not None and expected != (cluster.cluster_id, cluster.broker_id)

"""ApiVersions (key 18): the APIs and versions that a broker offers (KIP-35).

v3 client software (KIP-511), features (KIP-584); v4 features from level 0 (KIP-1022); v5 the
intended broker (KIP-1242). The response header is always v0.
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BOOL, INT16, INT32, INT64, STRING, Message, Struct, array, field


class ApiVersionsRequest(Message, api=ApiKey.API_VERSIONS):
    client_software_name: str = field(STRING, "3+")
    client_software_version: str = field(STRING, "3+")
    cluster_id: str | None = field(STRING, "5+", nullable=True)
    node_id: int = field(INT32, "5+", default=-1)


class ApiVersion(Struct):
    api_key: int = field(INT16)
    min_version: int = field(INT16)
    max_version: int = field(INT16)


class SupportedFeatureKey(Struct):
    name: str = field(STRING)
    min_version: int = field(INT16)
    max_version: int = field(INT16)


class FinalizedFeatureKey(Struct):
    name: str = field(STRING)
    max_version_level: int = field(INT16)
    min_version_level: int = field(INT16)


class ApiVersionsResponse(Message, api=ApiKey.API_VERSIONS):
    error_code: int = field(INT16)
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = field(INT32, "1+")
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, "3+", tag=0)
    finalized_features_epoch: int = field(INT64, "3+", default=-1, tag=1)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, "3+", tag=2)
    zk_migration_ready: bool = field(BOOL, "3+", tag=3)

"""UpdateFeatures (key 57): finalizes cluster features (KIP-584).

v1 upgrade type and validate only (KIP-778); v2 no result for each feature (KIP-1022).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BOOL, INT8, INT16, INT32, STRING, Message, Struct, array, field


class FeatureUpdateKey(Struct):
    feature: str = field(STRING)
    max_version_level: int = field(INT16)
    allow_downgrade: bool = field(BOOL, "0")
    upgrade_type: int = field(INT8, "1+", default=1)


class UpdateFeaturesRequest(Message, api=ApiKey.UPDATE_FEATURES):
    timeout_ms: int = field(INT32, default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = field(BOOL, "1+")


class UpdatableFeatureResult(Struct):
    feature: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)


class UpdateFeaturesResponse(Message, api=ApiKey.UPDATE_FEATURES):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0-1")

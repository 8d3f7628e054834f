"""Features of a cluster: describe and update (AdminClient's part of `FeatureCommand`, KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from kafkapy.admin.errors import api_error, check
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

# The first version of UpdateFeatures that can validate without a change (KIP-778).
_VALIDATE_VERSION: Final = 1


class UpgradeType(IntEnum):
    """Kafka's `FeatureUpdate.UpgradeType`."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureDescription(NamedTuple):
    """A feature that a broker supports, and its level in the cluster (0: off)."""

    name: str
    min_version: int
    max_version: int
    level: int


class Features(NamedTuple):
    """The features by name, and the epoch of their levels; -1 if there is none."""

    features: list[FeatureDescription]
    epoch: int


def describe_features(cluster: Cluster) -> Features:
    """The features of one broker, which may be any.

    Raises:
        ApiError: no broker responds.
    """
    request = ApiVersionsRequest(client_software_name="kafkapy", client_software_version="0.1")
    response = cluster.request(request)
    check(response.error_code)
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    found = [
        FeatureDescription(each.name, each.min_version, each.max_version, levels.get(each.name, 0))
        for each in response.supported_features
    ]
    return Features(sorted(found), response.finalized_features_epoch)


def update_features(
    cluster: Cluster, levels: Mapping[str, int], kind: UpgradeType, *, validate_only: bool
) -> dict[str, ApiError | None]:
    """Set levels; 0 disables a feature. Returns None or the error, by feature.

    Raises:
        ApiError: the controller does not respond, or is too old to validate only.
    """
    rows = [
        FeatureUpdateKey(
            feature=name,
            max_version_level=level,
            allow_downgrade=kind is not UpgradeType.UPGRADE,
            upgrade_type=kind,
        )
        for name, level in levels.items()
    ]
    request = UpdateFeaturesRequest(feature_updates=rows, validate_only=validate_only)
    response = cluster.controller_request(
        request, min_version=_VALIDATE_VERSION if validate_only else None
    )
    error = _error(response.error_code, response.error_message)
    row_errors = {
        row.feature: _error(row.error_code, row.error_message) for row in response.results
    }
    return {name: row_errors.get(name) or error for name in sorted(levels)}


def _error(code: int, message: str | None) -> ApiError | None:
    return api_error(code, message) if code else None

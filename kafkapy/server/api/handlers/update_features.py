"""UpdateFeatures (key 57), versions 0-2.

Behaviour: the controller limits the levels of all requested features, or of none if one has an
error. It refuses levels that a broker does not support, and lower levels without a downgrade type
(KIP-584, KIP-778). Version notes: v0 has a flag for downgrades; v1 validation only; versions before
v2 return a row for each feature.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafkapy.server.api.handler_support import require_controller
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.cluster_features import ClusterFeatures, FeatureUpdate
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.requests.outcomes import ResponseCoroutine

_UPGRADE = 1


def handle(
    features: ClusterFeatures,
    controller: ControllerTask,
    context: RequestContext,
    request: UpdateFeaturesRequest,
) -> ResponseCoroutine[UpdateFeaturesResponse]:
    """Limit the levels of features."""
    require_controller(controller)
    updates = [
        FeatureUpdate(row.feature, row.max_version_level, _allows_downgrade(row, context.version))
        for row in request.feature_updates
    ]

    async def update() -> UpdateFeaturesResponse:
        await features.update(updates, validate_only=request.validate_only)
        return UpdateFeaturesResponse(
            results=[UpdatableFeatureResult(feature=each.name) for each in updates]
        )

    return update()


def _allows_downgrade(row: FeatureUpdateKey, version: int) -> bool:
    return row.allow_downgrade if version == 0 else row.upgrade_type != _UPGRADE


def refuse(request: UpdateFeaturesRequest, error: ApiError, version: int) -> UpdateFeaturesResponse:
    """One error for all features."""
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)

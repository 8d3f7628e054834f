"""UpdateFeatures: what each version says of downgrades; only the controller answers."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kafkapy.server.api.handlers import update_features
from kafkapy.server.cluster.cluster_features import FeatureUpdate
from tests.harness.cores.request_contexts import request_context

ACTIVE: Any = SimpleNamespace(controller=SimpleNamespace(is_active=True))


class Recorded:
    def __init__(self) -> None:
        self.seen: list[tuple[list[FeatureUpdate], bool]] = []

    async def update(self, updates: list[FeatureUpdate], *, validate_only: bool) -> None:
        self.seen.append((updates, validate_only))


context = partial(request_context, 57)


@pytest.mark.parametrize(
    ("version", "row", "allow_downgrade"),
    [
        (0, {"allow_downgrade": True}, True),
        (0, {"allow_downgrade": False, "upgrade_type": 2}, False),
        (1, {"upgrade_type": 1, "allow_downgrade": True}, False),
        (2, {"upgrade_type": 2}, True),
        (2, {"upgrade_type": 3}, True),
    ],
)
def test_a_downgrade_must_be_asked_for(version: int, row: Any, allow_downgrade: bool) -> None:
    features: Any = Recorded()
    request = UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="f", max_version_level=1, **row)]
    )
    response = asyncio.run(update_features.handle(features, ACTIVE, context(version), request))
    assert features.seen == [([FeatureUpdate("f", 1, allow_downgrade)], False)]
    assert [(each.feature, each.error_code) for each in response.results] == [("f", 0)]


def test_another_broker_is_the_controller() -> None:
    features: Any = Recorded()
    nobody: Any = SimpleNamespace(controller=None)
    with pytest.raises(ApiError) as caught:
        update_features.handle(features, nobody, context(1), UpdateFeaturesRequest())
    assert caught.value.code is ErrorCode.NOT_CONTROLLER

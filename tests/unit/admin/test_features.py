"""Features of a cluster, as its brokers answer."""

from __future__ import annotations

import pytest

from kafkapy.admin.features import UpgradeType, update_features
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey
from kafkapy.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata


def test_each_feature_has_its_own_error_before_version_2() -> None:
    rows = [
        UpdatableFeatureResult(feature="a"),
        UpdatableFeatureResult(
            feature="b", error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="no"
        ),
    ]
    versions = {key: (each.first, each.last) for key, each in API_VERSIONS.items()}
    versions[ApiKey.UPDATE_FEATURES] = (0, 1)
    script = {
        ApiKey.METADATA: metadata(),
        ApiKey.UPDATE_FEATURES: UpdateFeaturesResponse(results=rows),
    }
    with Cluster("b:1", connector=ScriptedCluster(script, versions).connect) as cluster:
        found = update_features(
            cluster, {"b": 1, "a": 1}, UpgradeType.SAFE_DOWNGRADE, validate_only=False
        )
    assert [(name, error and error.message) for name, error in found.items()] == [
        ("a", None),
        ("b", "no"),
    ]


def test_a_refusal_without_a_message_has_the_reason_of_kafkas_tool() -> None:
    """Brokers send none to a login that may not update features; the code's name was shown."""
    answer = UpdateFeaturesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    script = {ApiKey.METADATA: metadata(), ApiKey.UPDATE_FEATURES: answer}
    with Cluster("b:1", connector=ScriptedCluster(script).connect) as cluster:
        found = update_features(cluster, {"a": 1}, UpgradeType.UPGRADE, validate_only=False)
    assert [error and error.message for error in found.values()] == [
        "Cluster authorization failed."
    ]


def test_a_dry_run_at_a_broker_that_only_has_version_0_changes_no_feature() -> None:
    """Version 0 has no flag for validation only: the broker would make the change."""
    script = {ApiKey.METADATA: metadata(), ApiKey.UPDATE_FEATURES: UpdateFeaturesResponse()}
    brokers = ScriptedCluster(script)
    brokers.versions = {**brokers.versions, ApiKey.UPDATE_FEATURES: (0, 0)}
    with (
        Cluster("b:1", connector=brokers.connect) as cluster,
        pytest.raises(ApiError, match="does not support UPDATE_FEATURES with version in range"),
    ):
        update_features(cluster, {"a": 0}, UpgradeType.UNSAFE_DOWNGRADE, validate_only=True)
    assert brokers.requests_of(ApiKey.UPDATE_FEATURES) == []

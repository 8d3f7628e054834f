"""`kafkapy features`: what it prints is what Kafka 4.3.1's kafka-features.sh prints."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafkapy.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.harness.scripted.cli import kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

BOOTSTRAP = ("--bootstrap-server", "b:1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "invalid choice: 'nonsense' (choose from describe, upgrade, downgrade"),
        (["upgrade"], "You must specify at least one feature to upgrade"),
        (["upgrade", "--feature", "a"], "string a: equals sign not found."),
        (["upgrade", "--feature", "a=x"], "string a=x: unable to parse x as a short."),
        (["upgrade", "--feature", "a=40000"], "unable to parse 40000 as a short."),
        (
            ["downgrade", "--feature", "a=1", "--feature", "a=2"],
            "Feature a was specified more than once.",
        ),
        (
            ["upgrade", "--release-version", "4.0", "--feature", "a=1"],
            "Can not specify `release-version` with other feature flags.",
        ),
        (["version-mapping", "--release-version", "5"], "Unknown metadata.version '5'."),
        (["feature-dependencies"], "argument --feature is required"),
        (["feature-dependencies", "--feature", "x=1"], "Unknown feature: x"),
        (
            ["feature-dependencies", "--feature", "transaction.version=9"],
            "No feature:transaction.version with feature level 9",
        ),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    done = kafkapy("features", *BOOTSTRAP, *words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)


def test_releases() -> None:
    done = kafkapy("features", *BOOTSTRAP, "version-mapping")
    assert done.stdout == (
        "metadata.version=30 (4.3-IV0)\nkraft.version=1\ntransaction.version=2\n"
        "group.version=1\neligible.leader.replicas.version=1\nshare.version=1\n"
        "streams.version=1\n"
    )
    done = kafkapy("features", *BOOTSTRAP, "version-mapping", "--release-version", "4.0-IV1")
    assert done.stdout == (
        "metadata.version=23 (4.0-IV1)\nkraft.version=1\ntransaction.version=0\n"
        "group.version=1\neligible.leader.replicas.version=0\nshare.version=0\n"
        "streams.version=0\n"
    )
    words = ("eligible.leader.replicas.version=1", "metadata.version=30", "group.version=1")
    flags = [flag for word in words for flag in ("--feature", word)]
    done = kafkapy("features", *BOOTSTRAP, "feature-dependencies", *flags)
    assert done.stdout == (
        "eligible.leader.replicas.version=1 requires:\n    metadata.version=23 (4.0-IV1)\n"
        "metadata.version=30 (4.3-IV0) has no dependencies.\n"
        "group.version=1 has no dependencies.\n"
    )


def test_levels_are_described_by_name() -> None:
    answer = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)],
        supported_features=[
            SupportedFeatureKey(name="metadata.version", min_version=7, max_version=99),
            SupportedFeatureKey(name="group.version", min_version=0, max_version=1),
        ],
        finalized_features=[
            FinalizedFeatureKey(name="metadata.version", max_version_level=25, min_version_level=25)
        ],
        finalized_features_epoch=42,
    )
    cluster = ScriptedCluster({ApiKey.API_VERSIONS: answer})
    done = kafkapy("features", *BOOTSTRAP, "describe", cluster=cluster)
    assert done.stdout == (
        "Feature: group.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 1\t"
        "FinalizedVersionLevel: 0\tEpoch: 42\n"
        "Feature: metadata.version\tSupportedMinVersion: 3.3-IV3\tSupportedMaxVersion: UNKNOWN [99]"
        "\tFinalizedVersionLevel: 4.0-IV3\tEpoch: 42\n"
    )


def test_updates() -> None:
    seen: list[UpdateFeaturesRequest] = []

    def answer(request: UpdateFeaturesRequest, _port: int) -> UpdateFeaturesResponse:
        seen.append(request)
        if request.feature_updates[0].max_version_level == 9:
            return UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="Too high."
            )
        rows = [UpdatableFeatureResult(feature=each.feature) for each in request.feature_updates]
        return UpdateFeaturesResponse(results=rows)

    cluster = ScriptedCluster({ApiKey.METADATA: metadata(), ApiKey.UPDATE_FEATURES: answer})
    one = ("--feature", "transaction.version=1")
    done = kafkapy("features", *BOOTSTRAP, "downgrade", *one, cluster=cluster)
    assert (done.stdout, done.status) == ("transaction.version was downgraded to 1.\n", 0)
    done = kafkapy("features", *BOOTSTRAP, "upgrade", *one, "--dry-run", cluster=cluster)
    assert done.stdout == "transaction.version can be upgraded to 1.\n"
    words = ("disable", "--feature", "group.version", "--unsafe")
    done = kafkapy("features", *BOOTSTRAP, *words, cluster=cluster)
    assert done.stdout == "group.version was disabled.\n"
    sent = [
        (each.feature_updates[0].upgrade_type, each.feature_updates[0].max_version_level)
        for each in seen
    ]
    assert sent == [(2, 1), (1, 1), (3, 0)]
    assert [each.validate_only for each in seen] == [False, True, False]
    done = kafkapy("features", *BOOTSTRAP, "upgrade", "--feature", "x=9", cluster=cluster)
    assert done.stdout == "Could not upgrade x to 9. Too high.\n"
    assert done.stderr == "1 out of 1 operation(s) failed.\n"
    assert done.status == 1

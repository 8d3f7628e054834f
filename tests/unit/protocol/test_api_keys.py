"""The table of versions."""

from __future__ import annotations

from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey


def test_every_api_has_versions() -> None:
    assert list(API_VERSIONS) == list(ApiKey)


def test_versions_of_kafka_3_9_and_later() -> None:
    """Spot checks; the rest is held against kio."""
    assert API_VERSIONS[ApiKey.FETCH] == (0, 18, 12)
    assert API_VERSIONS[ApiKey.LEADER_AND_ISR] == (0, 7, 4)
    assert API_VERSIONS[ApiKey.CONTROLLED_SHUTDOWN] == (0, 3, 3)

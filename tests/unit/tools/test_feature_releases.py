"""Levels of features by release."""

from __future__ import annotations

from kafkapy.tools.feature_releases import RELEASES, levels_of_release, release_of_level


def test_a_short_name_is_the_last_release_of_that_name() -> None:
    assert levels_of_release("4.0") == levels_of_release("4.0-IV3")
    assert levels_of_release("3.9")["transaction.version"] == 0


def test_levels_count_releases() -> None:
    assert [release_of_level(level) for level in range(7, 7 + len(RELEASES))] == [*RELEASES]
    assert release_of_level(6) == "UNKNOWN [6]"

"""A coordinator that was given no topics knows none."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.coordinator.groups.topic_source import NO_TOPICS


def test_there_is_nothing() -> None:
    assert [*NO_TOPICS.names()] == []
    assert NO_TOPICS.find("t") is None
    assert NO_TOPICS.name_of(ZERO_UUID) is None
    assert NO_TOPICS.version == 0
    with pytest.raises(ApiError):
        NO_TOPICS.pattern(".*")

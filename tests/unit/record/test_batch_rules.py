"""The window of timestamps a topic accepts."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_rules import BatchRules, check_timestamp
from tests.harness.storage.batches import NOW_MS

WINDOW = BatchRules(timestamp_before_max_ms=1000, timestamp_after_max_ms=50)


@pytest.mark.parametrize("timestamp", [NOW_MS - 1000, NOW_MS, NOW_MS + 50, -1])
def test_within(timestamp: int) -> None:
    check_timestamp(timestamp, WINDOW, NOW_MS)


@pytest.mark.parametrize("timestamp", [NOW_MS - 1001, NOW_MS + 51, 0, -2])
def test_outside(timestamp: int) -> None:
    with pytest.raises(ApiError, match=f"{timestamp} is out of range") as caught:
        check_timestamp(timestamp, WINDOW, NOW_MS)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("timestamp", [-(2**62), 0, 2**63 - 1])
def test_the_default_window_is_all_time(timestamp: int) -> None:
    check_timestamp(timestamp, BatchRules(), NOW_MS)

"""Length of the pause for a client beyond its quota, and removal of idle clients."""

from __future__ import annotations

import math

import pytest

from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.quotas import quota_usage
from kafkapy.server.quotas.quota_usage import (
    INACTIVE_MS,
    PAUSE_MS_MAX,
    Ledger,
    Usage,
    Windows,
    throttle_time_ms,
)

NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("rate", "limit", "span_ms", "pause_max_ms", "pause_ms"),
    [
        (99, 100, 10_000, None, 0),
        (100, 100, 10_000, None, 0),
        (150, 100, 10_000, None, 5000),
        (150, 100, 10_400, None, 5200),
        (150, 100, 10_000, 1000, 1000),
        (1.25, 1, 1, None, 0),
        (1.5, 1, 1, None, 1),  # halves are rounded up
        (1e300, 1e-300, 10_000, None, PAUSE_MS_MAX),
        (1e300, 1e-300, 10_000, 1000, 1000),
        # Not above zero: a pause only where pauses are bounded.
        (1, 0, 10_000, None, 0),
        (1, 0, 10_000, 1000, 1000),
        (0, 0, 10_000, 1000, 0),
        (1, -1, 10_000, 1000, 0),
        (1, math.nan, 10_000, 1000, 0),
        (math.inf, 100, 0, None, 0),
    ],
)
def test_pauses(
    rate: float, limit: float, span_ms: int, pause_max_ms: int | None, pause_ms: int
) -> None:
    assert throttle_time_ms(rate, limit, span_ms, pause_max_ms) == pause_ms


def windows(**properties: str) -> Windows:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return Windows(KafkaConfig(given))


def test_windows_are_configured() -> None:
    assert (windows().num, windows().size_ms) == (11, 1000)
    other = windows(quota_window_num="3", quota_window_size_seconds="2")
    assert (other.num, other.size_ms) == (3, 2000)
    mutations = Windows(KafkaConfig({"controller.quota.window.num": "5"}), "controller.")
    assert (mutations.num, mutations.size_ms) == (5, 1000)


def test_a_burst_is_paid_for_later() -> None:
    usage = Usage(windows())
    usage.limit = 100
    assert usage.record(1000, NOW_MS) == 0  # ten windows of it
    assert usage.record(1000, NOW_MS) == 10_000
    assert usage.record(0, NOW_MS + 5000) == 10_000  # 2000 in 10 s is still twice as much
    assert usage.record(0, NOW_MS + 10_500) == 9500
    assert usage.record(0, NOW_MS + 11_000) == 0  # the window it was in is no longer looked at


def test_a_new_limit_is_in_force_for_what_is_written_down() -> None:
    ledger: Ledger[str] = Ledger(windows())
    assert ledger.usage("a", 100, NOW_MS).record(1000, NOW_MS) == 0
    assert ledger.usage("a", 50, NOW_MS).record(0, NOW_MS) == 10_000
    assert ledger.usage("b", 50, NOW_MS).record(0, NOW_MS) == 0


def test_who_is_quiet_for_an_hour_is_forgotten() -> None:
    ledger: Ledger[int] = Ledger(windows())
    for client in range(100):
        ledger.usage(client, 1, NOW_MS)
    ledger.usage(7, 1, NOW_MS + 1000)
    ledger.usage(100, 1, NOW_MS + INACTIVE_MS)
    assert [client for client, _ in ledger.items()] == [7, 100]


def test_beyond_the_bound_the_quietest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_usage, "USAGES_MAX", 8)
    ledger: Ledger[int] = Ledger(windows())
    for key in (*range(8), 0):
        ledger.usage(key, 1, NOW_MS + 10 * (key or 9))
    oldest = ledger.usage(0, 1, NOW_MS + 100)
    ledger.usage(8, 1, NOW_MS + 101)
    assert sorted(key for key, _ in ledger.items()) == [0, 3, 4, 5, 6, 7, 8]
    assert ledger.usage(0, 1, NOW_MS + 102) is oldest

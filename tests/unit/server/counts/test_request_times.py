"""A timer in bounded memory."""

from __future__ import annotations

import pytest

from kafkapy.server.counts.request_times import RequestTimes


@pytest.mark.parametrize(
    ("q", "seconds"), [(0.0, 1.0), (0.5, 51.0), (0.99, 100.0), (0.999, 100.0), (1.0, 100.0)]
)
def test_quantiles(q: float, seconds: float) -> None:
    times = RequestTimes()
    for i in range(100, 0, -1):
        times.add(float(i))
    assert times.quantile(q) == seconds


def test_quantiles_are_of_the_latest_requests() -> None:
    times = RequestTimes()
    assert times.quantile(0.5) == 0.0
    for _ in range(1024):
        times.add(9.0)
    for _ in range(1023):
        times.add(1.0)
    assert (times.quantile(0.5), times.quantile(1.0)) == (1.0, 9.0)
    times.add(1.0)
    assert times.quantile(1.0) == 1.0
    assert (times.count, len(times.recent_s)) == (2048, 1024)


def test_the_longest_and_the_mean() -> None:
    times = RequestTimes()
    assert (times.maximum(), times.average()) == (0.0, 0.0)
    for seconds in (1.0, 4.0, 1.0):
        times.add(seconds)
    assert (times.maximum(), times.average()) == (4.0, 2.0)

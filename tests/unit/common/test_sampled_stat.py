"""Rates, averages and buckets: each row is what Apache Kafka 3.9.1's own classes made of the same
records (`Rate`, `TokenBucket` run with 11 windows of a second)."""

from __future__ import annotations

import math

import pytest

from kafkapy.common.sampled_stat import SampledStat, TokenBucket

# (recorded or None, at ms, rate a second then, over how many ms)
RATES = [
    (1000, 0, 100.0, 10_000),
    (500, 0, 150.0, 10_000),
    (500, 400, 192.3076923076923, 10_400),
    (100, 999, 190.92644785889627, 10_999),
    (100, 1000, 220.0, 10_000),
    (100, 2500, 219.04761904761904, 10_500),
    (None, 3000, 230.0, 10_000),
    (700, 9000, 300.0, 10_000),
    (None, 10_999, 272.75206836985177, 10_999),
    (None, 11_000, 272.72727272727275, 11_000),
    (None, 11_500, 260.8695652173913, 11_500),
    (None, 12_500, 80.0, 10_000),
    (5, 13_000, 76.66666666666667, 10_500),
    (5, 13_999, 64.5513228475316, 10_999),
    (None, 30_000, 0.0, 10_000),
    (9, 30_001, 0.8999100089991001, 10_001),
]

# (taken or None, at ms, tokens left), 5 a second
BUCKET = [
    (None, 1_000_000, 55.0),
    (1, 1_000_000, 54.0),
    (60, 1_000_000, -6.0),
    (10, 1_001_000, -11.0),
    (None, 1_003_000, -1.0),
    (None, 1_900_000, 55.0),
]


def test_a_rate_is_kafkas_at_every_moment() -> None:
    stat = SampledStat(1000, 11)
    for value, now_ms, rate, span_ms in RATES:
        if value is not None:
            stat.record(value, now_ms)
        assert (stat.rate(now_ms), stat.span_ms(now_ms)) == (rate, span_ms), now_ms


def test_what_is_taken_back_was_never_there() -> None:
    stat = SampledStat(1000, 11)
    stat.record(1000, 0)
    before = stat.rate(5000)
    stat.record(700, 5000)
    stat.record(-700, 5000)
    assert stat.rate(5000) == before


def test_windows_are_used_again() -> None:
    stat = SampledStat(1000, 2)
    for second in range(10):
        stat.record(100, second * 1000)
    assert stat.rate(9000) == 200.0  # what is older than two windows does not count
    assert stat.span_ms(9000) == 1000


def test_one_window_that_has_just_begun() -> None:
    stat = SampledStat(1000, 1)
    assert stat.rate(5) == 0
    stat.record(1, 5)
    assert stat.rate(5) == math.inf
    assert stat.rate(505) == 2


def test_an_average_is_of_what_was_recorded_lately() -> None:
    stat = SampledStat(30_000, 2)
    assert math.isnan(stat.average(0))
    stat.record(10, 0)
    stat.record(30, 31_000)
    assert stat.average(31_000) == 20
    assert stat.average(60_000) == 30
    assert math.isnan(stat.average(91_000))


def test_a_bucket_is_kafkas_at_every_moment() -> None:
    bucket = TokenBucket(1000, 11)
    for taken, now_ms, left in BUCKET:
        if taken is not None:
            bucket.take(taken, 5, now_ms)
        assert bucket.tokens(5, now_ms) == left, now_ms


@pytest.mark.parametrize(("per_second", "left"), [(0, 0), (10, 110), (0.5, 5.5)])
def test_a_bucket_holds_what_its_windows_give(per_second: float, left: float) -> None:
    assert TokenBucket(1000, 11).tokens(per_second, 0) == left

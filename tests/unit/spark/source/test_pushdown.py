"""pushdown: bounds are never narrower than the query; what is exact leaves Spark's plan."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.pushdown import ANY, Bounds, Interval, push_filters

PARTITION, OFFSET, TOPIC, TIME = ("partition",), ("offset",), ("topic",), ("timestamp",)
MOMENT = datetime(2026, 11, 20, 12, 0, 0, 1500, UTC)
MOMENT_US = 1_795_176_000_001_500


def bounds(*filters: Filter) -> Bounds:
    """The bounds that these filters become; no filter may be left."""
    made, left = push_filters(filters)
    assert left == []
    return made


@pytest.mark.parametrize(
    ("condition", "interval"),
    [
        (EqualTo(OFFSET, 7), Interval(7, 7)),
        (GreaterThan(OFFSET, 7), Interval(low=8)),
        (GreaterThanOrEqual(OFFSET, 7), Interval(low=7)),
        (LessThan(OFFSET, 7), Interval(high=6)),
        (LessThanOrEqual(OFFSET, 7), Interval(high=7)),
    ],
)
def test_comparisons_of_offsets(condition: Filter, interval: Interval) -> None:
    assert bounds(condition) == Bounds(offset=interval & ANY)


def test_conditions_meet() -> None:
    both = bounds(
        GreaterThanOrEqual(OFFSET, 5),
        LessThan(OFFSET, 9),
        EqualTo(PARTITION, 3),
        In(TOPIC, ("a", "b")),
    )
    assert both.offset == Interval(5, 8)
    assert both.may_match(TopicPartition("a", 3))
    assert not both.may_match(TopicPartition("a", 2))
    assert not both.may_match(TopicPartition("c", 3))
    assert not bounds(In(TOPIC, ("a",)), EqualTo(TOPIC, "b")).may_match(TopicPartition("a", 0))
    assert not bounds(In(PARTITION, (1, 2)), In(PARTITION, (2, 3))).may_match(
        TopicPartition("a", 1)
    )
    assert bounds(In(PARTITION, (1, 2)), GreaterThan(PARTITION, 1)).may_match(
        TopicPartition("a", 2)
    )


def test_a_list_of_offsets_bounds_and_stays_with_spark() -> None:
    made, left = push_filters([In(OFFSET, (9, 3, None))])
    assert made.offset == Interval(3, 9)
    assert len(left) == 1
    nothing, _ = push_filters([In(OFFSET, (None,))])
    assert nothing.offset.low > nothing.offset.high


@pytest.mark.parametrize(
    ("condition", "first_ms"),
    [
        (GreaterThanOrEqual(TIME, MOMENT), MOMENT_US // 1000 + 1),  # not a whole ms: the next one
        (GreaterThan(TIME, MOMENT.replace(microsecond=2000)), MOMENT_US // 1000 + 2),
        (LessThan(TIME, MOMENT), None),
    ],
)
def test_the_first_timestamp_in_ms(condition: Filter, first_ms: int | None) -> None:
    assert bounds(condition).first_timestamp_ms == first_ms


def test_moments_are_compared_wherever_they_are_from() -> None:
    away = MOMENT.astimezone(timezone(timedelta(hours=-7)))
    assert bounds(EqualTo(TIME, away)).timestamp_us == Interval(MOMENT_US, MOMENT_US)
    assert bounds(EqualTo(TIME, MOMENT.astimezone().replace(tzinfo=None))) == bounds(
        EqualTo(TIME, MOMENT)
    )


@pytest.mark.parametrize(
    ("moment", "microseconds"),
    [
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), 253_402_300_799_000_000),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))), 253_402_318_799_999_999),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=5))), -62_135_614_800_000_000),
    ],
)
def test_the_first_and_the_last_moment(moment: datetime, microseconds: int) -> None:
    """They are not in the range of Python in every zone."""
    assert bounds(LessThanOrEqual(TIME, moment)).timestamp_us == Interval(high=microseconds)


def test_a_time_before_1970_is_within_an_open_interval() -> None:
    """Records of format v0, and those of some producers, have the timestamp -1."""
    assert bounds(LessThan(TIME, MOMENT)).timestamp_us.contains(-1000)
    early = datetime(1969, 12, 31, tzinfo=UTC)
    since = bounds(GreaterThanOrEqual(TIME, early))
    assert since.timestamp_us.low == -86_400_000_000
    assert since.first_timestamp_ms is None  # as no offset can be found by such a time
    assert bounds(EqualTo(TIME, early)).timestamp_us == Interval(-86_400_000_000, -86_400_000_000)


def test_what_is_never_null_needs_no_check() -> None:
    assert (
        bounds(IsNotNull(TOPIC), IsNotNull(PARTITION), IsNotNull(OFFSET), IsNotNull(TIME))
        == Bounds()
    )


@pytest.mark.parametrize(
    "condition",
    [
        IsNotNull(("key",)),
        IsNull(PARTITION),
        Not(EqualTo(PARTITION, 1)),
        StringStartsWith(TOPIC, "a"),
        GreaterThan(TOPIC, "a"),
        EqualTo(("value",), b"x"),
        EqualTo(PARTITION, 1.5),
        EqualTo(OFFSET, None),
        EqualTo(("offset", "x"), 1),
        GreaterThan(TIME, "2026"),
    ],
    ids=repr,
)
def test_everything_else_is_left_to_spark(condition: Any) -> None:
    assert push_filters([condition]) == (Bounds(), [condition])

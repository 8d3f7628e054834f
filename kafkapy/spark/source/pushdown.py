"""Bounds of a read from a query's WHERE on topic, partition, offset and timestamp. Pure.

Spark passes filters only if `spark.sql.python.filterPushdown.enabled` is on. We never turn it on:
Spark 4.3 keeps the plan of a frame's last filtered query and uses it for the frame's next query
without filters, which then misses rows. Spark still applies every filter that is not enforced
exactly, so bounds may be wider than the query, never narrower.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from kafkapy.common.topic_partition import TopicPartition

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_INT64_MAX: Final = 2**63 - 1
_NEVER_NULL: Final = ("topic", "partition", "offset", "timestamp", "timestampType")


class Interval(NamedTuple):
    """low <= number <= high."""

    low: int = -_INT64_MAX - 1
    high: int = _INT64_MAX

    def __and__(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def contains(self, number: int) -> bool:
        """Whether the interval contains `number`."""
        return self.low <= number <= self.high


ANY: Final = Interval()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Records outside of these bounds are not read. None for topics or partitions means all.

    `timestamp_us` is in microseconds, as Spark compares; Kafka's records have whole milliseconds.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    partition: Interval = ANY
    offset: Interval = ANY
    timestamp_us: Interval = ANY

    def may_match(self, topic_partition: TopicPartition) -> bool:
        """Whether a partition may have matching records."""
        topic, partition = topic_partition
        return (
            (self.topics is None or topic in self.topics)
            and (self.partitions is None or partition in self.partitions)
            and self.partition.contains(partition)
        )

    @property
    def first_timestamp_ms(self) -> int | None:
        """The lowest timestamp of a matching record, in ms; None without a bound."""
        low = self.timestamp_us.low
        return -(-low // 1000) if low > 0 else None


def push_filters(filters: Iterable[Filter]) -> tuple[Bounds, list[Filter]]:
    """The bounds from the conjunction of filters, and the filters left to Spark."""
    bounds = Bounds()
    remaining: list[Filter] = []
    for condition in filters:
        narrowed, exact = _narrow(bounds, condition)
        bounds = narrowed
        if not exact:
            remaining.append(condition)
    return bounds, remaining


def _narrow(bounds: Bounds, condition: Filter) -> tuple[Bounds, bool]:
    """The bounds with one more filter, and whether they enforce it fully."""
    (column, *inner) = getattr(condition, "attribute", ("",))
    if inner:
        return bounds, False
    if isinstance(condition, IsNotNull):
        return bounds, column in _NEVER_NULL
    value = getattr(condition, "value", None)
    if column == "topic" and isinstance(condition, EqualTo | In):
        return _restrict_topics(bounds, _values(condition)), True
    if column == "timestamp" and isinstance(value, datetime):
        interval = _interval(condition, _microseconds(value))
        if interval is None:
            return bounds, False
        return replace(bounds, timestamp_us=bounds.timestamp_us & interval), True
    if column not in ("partition", "offset"):
        return bounds, False
    if isinstance(condition, In):
        return _restrict_numbers(bounds, column, _values(condition))
    interval = _interval(condition, value) if type(value) is int else None
    if interval is None:
        return bounds, False
    if column == "partition":
        return replace(bounds, partition=bounds.partition & interval), True
    return replace(bounds, offset=bounds.offset & interval), True


def _restrict_topics(bounds: Bounds, names: frozenset[Any]) -> Bounds:
    return replace(bounds, topics=names if bounds.topics is None else names & bounds.topics)


def _restrict_numbers(bounds: Bounds, column: str, numbers: frozenset[Any]) -> tuple[Bounds, bool]:
    """The bounds for a list of numbers: each partition; offsets from the lowest to the highest."""
    if column == "partition":
        common = numbers if bounds.partitions is None else numbers & bounds.partitions
        return replace(bounds, partitions=common), True
    non_null = [number for number in numbers if number is not None]
    span = Interval(min(non_null), max(non_null)) if non_null else Interval(1, 0)
    return replace(bounds, offset=bounds.offset & span), False


def _values(condition: Any) -> frozenset[Any]:
    return frozenset(condition.value if isinstance(condition, In) else (condition.value,))


def _interval(condition: Filter, value: int) -> Interval | None:
    """The interval of a comparison with `value`; None for another filter."""
    if isinstance(condition, EqualTo):
        return Interval(value, value)
    if isinstance(condition, GreaterThan):
        return Interval(low=value + 1)
    if isinstance(condition, GreaterThanOrEqual):
        return Interval(low=value)
    if isinstance(condition, LessThan):
        return Interval(high=value - 1)
    if isinstance(condition, LessThanOrEqual):
        return Interval(high=value)
    return None


def _microseconds(moment: datetime) -> int:
    """Microseconds since 1970, exactly. A time without a zone is local, as in PySpark."""
    # No zone is converted to another: 9999-12-31 does not exist in all of them.
    aware = moment if moment.tzinfo else moment.astimezone()
    elapsed = aware - _EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds

"""Offsets of a Spark query: their JSON, the limits of a trigger, and the tasks of a range.

Pure. `Offsets` maps a partition to the *next* offset to read, as Spark's own Kafka source does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.common.topic_partition import TopicPartition

Offsets = dict[TopicPartition, int]
T = TypeVar("T")

LATEST: Final = -1
EARLIEST: Final = -2

START_KEY: Final = "@from"
"""The key of a batch's start in its end offset. No topic can have this name.

Spark requests the initial offset again if it restarts before batch 0 is committed. With `latest`,
the records in between would be lost if the second offset were used.
"""


class DataLossError(KafkapyError):
    """Offsets of the query do not exist any more, and `failOnDataLoss` is true."""


class OffsetRange(NamedTuple):
    """The range that one task reads: start <= offset < end."""

    topic_partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of offsets in the range. There may be fewer records."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic_partition} offsets {self.start} to {self.end}"


def to_json_object(offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """`{"topic": {"0": 23}}`, sorted: Spark compares offsets as text."""
    topics: dict[str, Any] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics


def from_json_object(topics: Mapping[str, Any]) -> Offsets:
    """The inverse of `to_json_object`. The start in an end offset is ignored."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in topics.items()
        if topic != START_KEY
        for partition, offset in partitions.items()
    }


def end_offset(start: Offsets, end: Offsets) -> dict[str, Any]:
    """The JSON object of a micro-batch's end, which contains its start."""
    return {**to_json_object(end), START_KEY: to_json_object(start)}


def start_of(start: Mapping[str, Any], end: Mapping[str, Any]) -> Offsets:
    """The start of the micro-batch that ends at `end`, whatever `start` Spark passes."""
    return from_json_object(end.get(START_KEY, start))


def parse_offsets(text: str) -> Offsets:
    """Read the user's JSON of offsets per partition; -1 is latest, -2 earliest.

    Raises:
        ConfigError: has an example of the expected form.
    """
    example = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
    return _parse(text, example, from_json_object, _int_values)


def parse_timestamps(text: str) -> Offsets:
    """Read the user's JSON of timestamps (ms) per partition. Raises as `parse_offsets`."""
    example = '{"topicA": {"0": 123456789, "1": 123456789}, "topicB": {"0": 123456789}}'
    return _parse(text, example, from_json_object, _int_values)


def parse_partitions(text: str) -> list[TopicPartition]:
    """Read the user's JSON of partitions per topic. Raises as `parse_offsets`."""

    def read(topics: Mapping[str, Any]) -> list[TopicPartition]:
        return [TopicPartition(topic, index) for topic in topics for index in topics[topic]]

    return _parse(text, '{"topicA":[0,1],"topicB":[0,1]}', read, _int_lists)


def _parse(
    text: str,
    example: str,
    read: Callable[[Mapping[str, Any]], T],
    is_valid: Callable[[Any], bool],
) -> T:
    try:
        value = json.loads(text)
        if isinstance(value, dict) and all(map(is_valid, value.values())):
            return read(value)
    except (ValueError, RecursionError):
        pass  # not JSON, nested too deeply, or a partition that is not a number: the same error
    raise ConfigError(f"Expected e.g. {example}, got {text}")


def _int_values(value: Any) -> bool:
    return isinstance(value, dict) and all(type(number) is int for number in value.values())


def _int_lists(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int for number in value)


def lost_ends(start: Offsets, end: Offsets) -> list[str]:
    """A message for each partition that has no end any more, or one before its start."""
    gone = sorted(start.keys() - end.keys())
    shorter = sorted(tp for tp in start.keys() & end.keys() if end[tp] < start[tp])
    return [f"{tp} is gone; offsets from {start[tp]} on were not read" for tp in gone] + [
        f"{tp} ends at offset {end[tp]} now, before offset {start[tp]}" for tp in shorter
    ]


def plan_ranges(
    start: Offsets, end: Offsets, earliest: Offsets, latest: Offsets
) -> tuple[list[OffsetRange], list[str]]:
    """The ranges from `start` to `end`, and a message for each loss of data. The ranges still
    include lost offsets; `existing_part` removes them.

    `earliest` and `latest` have the partitions that exist now. A partition that is not in `start`
    is new, and is read from its beginning, as in Spark's Kafka source.
    """
    ranges: list[OffsetRange] = []
    losses = lost_ends(start, end)
    for tp, until in sorted(end.items()):
        begin = start.get(tp)
        if tp not in earliest:
            losses.append(f"{tp} is gone; offsets {begin or 0} to {until} were not read")
            ranges.append(OffsetRange(tp, until if begin is None else begin, until))
            continue
        log_start, log_end = earliest[tp], latest[tp]
        if begin is None:
            if log_start > 0:
                losses.append(new_partition_loss(tp, log_start))
            begin = log_start
        planned = OffsetRange(tp, begin, until)
        if begin < until and existing_part(planned, earliest, latest) != planned:
            losses.append(
                f"{tp} has offsets {log_start} to {log_end} now; {begin} to {until} were to be read"
            )
        ranges.append(planned)
    return [r for r in ranges if r.size > 0], losses


def new_partition_loss(topic_partition: TopicPartition, log_start: int) -> str:
    """The message for a new partition that has lost records."""
    return f"The new partition {topic_partition} starts at offset {log_start} instead of 0"


def existing_part(planned: OffsetRange, earliest: Offsets, latest: Offsets) -> OffsetRange:
    """The part of a range that exists now; an empty range if nothing exists."""
    tp, start, end = planned
    start = min(max(start, earliest.get(tp, end)), end)
    return OffsetRange(tp, start, max(start, min(end, latest.get(tp, end))))


def report_losses(
    losses: Iterable[str], fail_on_data_loss: bool, warn: Callable[[str], object]
) -> None:
    """Raise for a loss of data, or log a warning for each, depending on `failOnDataLoss`.

    Raises:
        DataLossError: names every partition and offset.
    """
    lost = list(losses)
    if lost and fail_on_data_loss:
        raise DataLossError(
            "; ".join(lost) + ". Kafka has deleted this data, or its topic, before it was read. "
            'To go on without it, set the source option "failOnDataLoss" to "false".'
        )
    for sentence in lost:
        warn(sentence + ". The query goes on, because failOnDataLoss is false.")


def rate_limit(limit: int, start: Offsets, latest: Offsets, earliest: Offsets) -> Offsets:
    """The end of a trigger of about `limit` offsets, spread in proportion to the partitions' lags.

    `earliest` has the starts of partitions that are not in `start`. A partition with any lag gets
    at least one offset, so that a small one does not starve (`KafkaMicroBatchStream`).
    """
    begins = {tp: start.get(tp, earliest.get(tp, 0)) for tp in latest}
    total = sum(max(latest[tp] - begins[tp], 0) for tp in latest)
    end: Offsets = {}
    for tp, until in latest.items():
        lag = until - begins[tp]
        if lag > 0:
            until = min(until, begins[tp] + max(limit * lag // total, 1))
        end[tp] = until
    return end


def split_ranges(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Cut ranges into about `min_partitions` tasks of at most `max_records` offsets.

    Large ranges are split in proportion to their size. Ranges that are too small stay whole, and do
    not count (`KafkaOffsetRangeCalculator`).
    """
    tasks = list(ranges)
    if max_records is not None:
        tasks = [part for r in tasks for part in _split_evenly(r, math.ceil(r.size / max_records))]
    if min_partitions is None or len(tasks) >= min_partitions:
        return tasks
    total = sum(r.size for r in tasks)
    large = [r for r in tasks if _part_count(r.size, total, min_partitions) > 1]
    large_total = sum(r.size for r in large)
    target_count = max(min_partitions - (len(tasks) - len(large)), 1)
    unsplit = set(tasks) - set(large)
    return [
        part
        for r in tasks
        for part in _split_evenly(
            r, 1 if r in unsplit else _part_count(r.size, large_total, target_count)
        )
    ]


def _part_count(size: int, total: int, parts: int) -> int:
    return max(math.floor(size / total * parts + 0.5), 1)


def _split_evenly(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    """`parts` ranges of nearly equal size, empty ones left out."""
    edges = [whole.start]
    for parts_left in range(min(parts, whole.size), 0, -1):
        edges.append(edges[-1] + (whole.end - edges[-1]) // parts_left)
    tp = whole.topic_partition
    return [OffsetRange(tp, a, b) for a, b in pairwise(edges) if a < b]

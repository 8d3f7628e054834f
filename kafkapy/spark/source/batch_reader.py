"""A batch read. Its range is resolved once, on the driver, before any task starts."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, Filter

from kafkapy.common.errors import ConfigError
from kafkapy.spark.source.offset_reader import OffsetReader, offset_reader
from kafkapy.spark.source.offsets import (
    Offsets,
    existing_part,
    plan_ranges,
    report_losses,
    split_ranges,
)
from kafkapy.spark.source.options import SourceOptions
from kafkapy.spark.source.pushdown import Bounds, push_filters
from kafkapy.spark.workers.engine import RangePartition, read_range

log: Final = logging.getLogger("kafkapy.spark")


PUSHDOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The module that Spark runs to plan a read while `spark.sql.python.filterPushdown.enabled` is
on.
"""


def batch_reader(options: SourceOptions) -> KafkapyBatchReader:
    """A batch reader, with `pushFilters` only if Spark will call it.

    While the conf is off, which is the default, Spark fails every query whose reader has that
    method. A data source cannot read the conf, but it can detect the worker in which it is created.
    """
    if PUSHDOWN_WORKER in sys.modules:
        return FilteringBatchReader(options)
    return KafkapyBatchReader(options)


class KafkapyBatchReader(DataSourceReader):  # type: ignore[misc]
    """Reads the topics from the starting to the ending offsets."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._bounds = Bounds()

    def partitions(self) -> list[RangePartition]:
        """Resolve the offsets and split the ranges.

        Raises as OffsetReader, and DataLossError; ConfigError if a range starts after its end.
        """
        options, bounds = self._options, self._bounds
        if options.max_offsets_per_trigger or options.min_offsets_per_trigger:
            log.warning(
                "maxOffsetsPerTrigger and minOffsetsPerTrigger have no effect in batch queries"
            )
        reader = offset_reader(options)
        existing = reader.partitions()
        selected = [tp for tp in existing if bounds.may_match(tp)]
        start, end = _apply_bounds(
            {tp: offset for tp, offset in reader.starting(existing).items() if tp in selected},
            {tp: offset for tp, offset in reader.ending(existing).items() if tp in selected},
            reader,
            bounds,
        )
        earliest, latest = reader.earliest(start), reader.latest(start)
        passed = _ends_before_log(start, end, earliest, latest)
        end |= {tp: start[tp] for tp in passed}
        planned, losses = plan_ranges(start, end, earliest, latest)
        losses += [
            f"{tp} starts at offset {earliest[tp]} now; offsets up to {until} were to be read"
            for tp, until in passed.items()
            if until > bounds.offset.low
        ]
        report_losses(losses, options.fail_on_data_loss, log.warning)
        readable = [part for r in planned if (part := existing_part(r, earliest, latest)).size]
        tasks = split_ranges(readable, options.min_partitions, options.max_records_per_partition)
        return [RangePartition(part, bounds.timestamp_us) for part in tasks]

    def read(self, partition: Any) -> Iterator[Any]:
        """Read a partition, in an executor. A plan without ranges has one empty partition."""
        if isinstance(partition, RangePartition):
            yield from read_range(self._options, partition.range, partition.timestamp_us)


class FilteringBatchReader(KafkapyBatchReader):
    """Reads only the offsets that the query's filters need."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Use the filters on topic, partition, offset and timestamp. Returns the others."""
        self._bounds, remaining = push_filters(filters)
        return remaining


def _ends_before_log(start: Offsets, end: Offsets, earliest: Offsets, latest: Offsets) -> Offsets:
    """The ends that retention has passed. No other range may start after its end, unless its start
    is beyond the log, which is a loss of data too.

    Raises:
        ConfigError: names the partition and both offsets.
    """
    inverted = {tp: end[tp] for tp in sorted(start) if end[tp] < start[tp] <= latest[tp]}
    for tp, until in inverted.items():
        if until >= earliest[tp]:
            raise ConfigError(
                f"{tp} would start at offset {start[tp]}, after its end {until}: compare the "
                "starting options with the ending ones"
            )
    return inverted


def _apply_bounds(
    start: Offsets, end: Offsets, reader: OffsetReader, bounds: Bounds
) -> tuple[Offsets, Offsets]:
    """The part of the ranges within the bounds. Partitions without any are left out. A range that
    starts after its end stays as it is, because its start may be a loss.

    Only the lower bound of timestamps limits offsets: no record before the first one that is new
    enough matches. Records after one that is too new may match, since producers set the time.
    """
    offsets = bounds.offset
    begin = {tp: max(offset, offsets.low) for tp, offset in start.items()}
    until = {tp: min(offset, offsets.high + 1) for tp, offset in end.items()}
    first_ms = bounds.first_timestamp_ms
    if first_ms is not None:
        first_offsets = reader.at_timestamp(begin, first_ms)
        begin = {tp: max(offset, first_offsets[tp]) for tp, offset in begin.items()}
    nonempty = [tp for tp in begin if begin[tp] < until[tp]]
    inverted = [tp for tp in start if start[tp] > end[tp]]
    return (
        {tp: begin[tp] for tp in nonempty} | {tp: start[tp] for tp in inverted},
        {tp: until[tp] for tp in nonempty} | {tp: end[tp] for tp in inverted},
    )

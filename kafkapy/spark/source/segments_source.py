"""`format("kafkapy-segments")`: log directories as a table, without a broker."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError
from kafkapy.common.patterns import PATTERN_ERRORS
from kafkapy.spark.source.batch_reader import PUSHDOWN_WORKER
from kafkapy.spark.source.option_table import SEGMENT_OPTIONS
from kafkapy.spark.source.options import refuse_unknown
from kafkapy.spark.source.pushdown import Bounds, push_filters
from kafkapy.spark.source.segments import (
    Replica,
    Segment,
    find_replicas,
    longest_replicas,
    read_segment,
)
from kafkapy.spark.source.source_columns import columns_of, default_columns, schema_of

_KNOWN: Final = {option.name.lower(): option.name for option in SEGMENT_OPTIONS}


@dataclass(frozen=True, slots=True)
class SegmentsOptions:
    """The checked options of one read of log directories."""

    paths: tuple[str, ...]
    topics: frozenset[str] | None
    pattern: re.Pattern[str] | None
    columns: tuple[str, ...]
    all_replicas: bool
    skip_aborted: bool
    fail_on_data_loss: bool


def parse_segments_options(given: Mapping[str, str]) -> SegmentsOptions:
    """Read and check the options.

    Raises:
        ConfigError: names the option, its value and what is allowed.
    """
    options = {name.lower(): value for name, value in given.items()}
    refuse_unknown(options, _KNOWN, "kafkapy-segments")
    # A URI as Spark's own sources have it, which do not decode percent signs.
    given_paths = comma_separated(options.get("path", ""))
    paths = tuple(re.sub(r"^(?i:file):(//)?(?=/(?!/))", "", path) for path in given_paths)
    if not paths:
        raise ConfigError("Name the log directories: .load('/var/lib/kafka/data')")
    topics = frozenset(comma_separated(options.get("subscribe", "")))
    try:
        pattern = re.compile(options["subscribepattern"]) if "subscribepattern" in options else None
    except PATTERN_ERRORS as error:
        raise ConfigError(f"subscribePattern is not a regular expression: {error}") from None
    return SegmentsOptions(
        paths=paths,
        topics=topics or None,
        pattern=pattern,
        columns=default_columns(_boolean(options, "includeHeaders", "false")),
        all_replicas=_boolean(options, "allReplicas", "false"),
        skip_aborted=_boolean(options, "skipAborted", "false"),
        fail_on_data_loss=_boolean(options, "failOnDataLoss", "true"),
    )


def _boolean(options: Mapping[str, str], name: str, default: str) -> bool:
    text = options.get(name.lower(), default).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"Invalid value '{text}' for option '{name}': it must be true or false")
    return text == "true"


class KafkapySegmentsSource(DataSource):  # type: ignore[misc]
    """Segments as a table with the schema of the kafkapy source."""

    @classmethod
    def name(cls) -> str:
        """The name in `format(...)` and `USING`."""
        return "kafkapy-segments"

    def schema(self) -> StructType:
        """The schema of the kafkapy source. Raises ConfigError for bad options."""
        return schema_of(parse_segments_options(self.options).columns)

    def reader(self, schema: StructType) -> Any:
        """A batch reader. Raises ConfigError."""
        options = replace(parse_segments_options(self.options), columns=columns_of(schema))
        if PUSHDOWN_WORKER in sys.modules:
            return FilteringSegmentsReader(options)
        return SegmentsReader(options)


class SegmentPartition(InputPartition):  # type: ignore[misc]
    """The input of a Spark task: one file."""

    def __init__(self, segment: Segment, bounds: Bounds) -> None:
        self.segment = segment
        self.bounds = bounds


class SegmentsReader(DataSourceReader):  # type: ignore[misc]
    """Reads each segment in a task of its own. Driver and executors must see the same files."""

    def __init__(self, options: SegmentsOptions) -> None:
        self._options = options
        self._bounds = Bounds()

    def partitions(self) -> list[SegmentPartition]:
        """The segments to read. Raises ConfigError, and ApiError for corrupt files."""
        options, bounds = self._options, self._bounds
        replicas = [each for each in find_replicas(options.paths) if self._is_selected(each)]
        if not options.all_replicas:
            replicas = longest_replicas(replicas, skip_corrupt=not options.fail_on_data_loss)
        return [
            SegmentPartition(segment, bounds)
            for replica in replicas
            for segment in replica.segments(bounds, skip_aborted=options.skip_aborted)
        ]

    def read(self, partition: Any) -> Iterator[Any]:
        """Read a partition, in an executor. A plan without segments has one empty partition."""
        if isinstance(partition, SegmentPartition):
            yield from read_segment(
                partition.segment,
                partition.bounds,
                columns=self._options.columns,
                skip_corrupt=not self._options.fail_on_data_loss,
            )

    def _is_selected(self, replica: Replica) -> bool:
        options, topic = self._options, replica.topic_partition.topic
        return (
            (options.topics is None or topic in options.topics)
            and (options.pattern is None or options.pattern.fullmatch(topic) is not None)
            and self._bounds.may_match(replica.topic_partition)
        )


class FilteringSegmentsReader(SegmentsReader):
    """Opens only the files that may have matching records for the query's filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Use the filters on topic, partition, offset and timestamp. Returns the others."""
        self._bounds, remaining = push_filters(filters)
        return remaining

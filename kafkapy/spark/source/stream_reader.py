"""A streaming read: micro-batches between offsets, with Spark's admission control.

Spark keeps one reader in a driver process for all calls except `read`; another process creates the
reader that is pickled for the executors. So connections are opened on first use. Nothing depends on
`stop`, since Spark kills the process, or on `commit`, which is never called for the last batch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from kafkapy.client.group_offsets import commit_offsets
from kafkapy.common.errors import ApiError, KafkapyError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.offset_reader import OffsetReader, offset_reader
from kafkapy.spark.source.offsets import (
    START_KEY,
    Offsets,
    end_offset,
    existing_part,
    from_json_object,
    lost_ends,
    new_partition_loss,
    plan_ranges,
    rate_limit,
    report_losses,
    split_ranges,
    start_of,
    to_json_object,
)
from kafkapy.spark.source.options import SourceOptions
from kafkapy.spark.workers.engine import RangePartition, cluster_of, read_range

log: Final = logging.getLogger("kafkapy.spark")

IDLE_WAIT_S: Final = 0.1
"""The time between two requests of an idle query for the latest offsets: without it, Spark makes
about 90 a second. Cached offsets would hide new records from `processAllAvailable`.
"""

COMMIT_LIMIT_MS: Final = 5000
"""The time that a batch waits for the coordinator of `commitGroupId`."""


class KafkapyStreamReader(
    DataSourceStreamReader,  # type: ignore[misc]
    SupportsTriggerAvailableNow,  # type: ignore[misc]
):
    """Reads topics as a stream. Offsets are JSON objects as in `offsets`."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._latest: Offsets | None = None
        self._latest_until = 0.0
        self._is_available_now = False
        self._target: Offsets | None = None  # of Trigger.AvailableNow
        self._last_trigger: float | None = None
        self._committed: Offsets = {}  # for commitGroupId
        self._start_error: KafkapyError | None = None  # of a new query
        self._last_warning = ""

    def initialOffset(self) -> dict[str, Any]:
        """The start of a query without a checkpoint; `offsets.START_KEY` explains when it is not
        used.

        An error is not raised here, because a restarted query does not need this start: partitions
        may have been added since the query began, or records or topics deleted. `latestOffset`
        raises it for a new query.
        """
        reader = self._reader()
        try:
            begin = reader.starting(reader.partitions())
        except KafkapyError as error:
            self._start_error = error
            return {}
        return end_offset(begin, begin)  # it may become the end of an empty batch 0

    def getDefaultReadLimit(self) -> ReadLimit:
        """The read limit: `maxOffsetsPerTrigger`, else `minOffsetsPerTrigger`, else none."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Make the first `latestOffset` set the end of the query. The end is not set here, because
        Spark resolves the start later, and the start `latest` may not be after the end.
        """
        self._is_available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next micro-batch; `start` if none is due, as Spark requires.

        A loss is reported before Spark writes the end to the checkpoint: the batch would fail for
        ever, also if the topic was only hidden by an ACL, or an open transaction by another
        isolation level.

        Raises:
            KafkapyError: the query is new, and its start cannot be used.
            DataLossError: partitions or records are gone, or a new partition has lost records.
        """
        if self._start_error is not None:
            raise self._start_error
        begin = from_json_object(start)
        self._commit_finished(begin)  # Spark has finished the records before `start`
        if self._is_available_now and self._target is None:
            self._target = self._fetch_latest(begin)
        latest = self._target if self._target is not None else self._recent_latest(begin)
        if self._options.fail_on_data_loss:
            report_losses(lost_ends(begin, latest), True, log.warning)
        if isinstance(limit, ReadMaxRows | ReadMinRows) and self._must_delay(begin, latest):
            return start
        new = self._new_partitions(latest.keys() - begin.keys())
        end = latest
        if isinstance(limit, ReadMaxRows):
            end = rate_limit(limit.max_rows, begin, latest, new)
        if end == begin:
            return start
        if self._options.fail_on_data_loss and self._target is not None:
            # They may be lost since the target was set.
            report_losses(lost_ends(end, self._read_latest(end)), True, log.warning)
        return end_offset(begin | new, end)

    def _new_partitions(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The starts of new partitions. They are kept in the batch's end offset, so that its tasks
        stay the same if it is planned again after retention.

        Raises:
            DataLossError: a partition has lost records.
        """
        starts = self._reader().earliest(partitions)
        losses = [new_partition_loss(tp, offset) for tp, offset in starts.items() if offset > 0]
        report_losses(losses, self._options.fail_on_data_loss, log.warning)
        return starts

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The newest known offsets, for the query's progress."""
        return None if self._latest is None else to_json_object(self._latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[RangePartition]:
        """Plan a micro-batch.

        Raises:
            DataLossError: names partitions and offsets.
            KafkapyError: the checkpoint has no start of batch 0, and the options have no valid one.
        """
        if self._start_error is not None and START_KEY not in end:
            raise self._start_error
        self._start_error = None
        options = self._options
        if start == end:
            return []
        begin, until = start_of(start, end), from_json_object(end)
        reader = self._reader()
        existing = reader.partitions(must_exist=False, warn=self._warn)
        existing = [tp for tp in existing if tp in until]
        earliest, latest = reader.earliest(existing), reader.latest(existing, until)
        planned, losses = plan_ranges(begin, until, earliest, latest)
        report_losses(losses, options.fail_on_data_loss, log.warning)
        # Split before lost offsets are removed: `exactlyOnce` identifies a batch's tasks by their
        # numbers, which must stay the same if the batch is planned again after retention.
        tasks = split_ranges(planned, options.min_partitions, options.max_records_per_partition)
        return [RangePartition(existing_part(part, earliest, latest)) for part in tasks]

    def read(self, partition: Any) -> Iterator[Any]:
        """Read a partition, in an executor."""
        return read_range(self._options, partition.range)

    def commit(self, end: dict[str, Any]) -> None:
        """Commit offsets before `end`. Called one batch late, and never for the last one."""
        self._commit_finished(from_json_object(end))

    def _commit_finished(self, offsets: Offsets) -> None:
        """Commit the progress to `commitGroupId` for observers. The query does not depend on it."""
        group = self._options.commit_group_id
        new_offsets = {tp: at for tp, at in offsets.items() if at != self._committed.get(tp)}
        if group is None or not new_offsets:
            return
        limits = ("default.api.timeout.ms", "request.timeout.ms")
        timeouts = dict.fromkeys(limits, str(COMMIT_LIMIT_MS))
        try:
            commit_offsets(
                cluster_of(self._options.client_properties | timeouts), group, new_offsets
            )
        except ApiError as error:
            log.warning("The offsets of group %s were not committed: %s", group, error)
        self._committed |= new_offsets

    def _must_delay(self, begin: Offsets, latest: Offsets) -> bool:
        """Whether to wait because of `minOffsetsPerTrigger` and `maxTriggerDelay`; never at the
        first trigger. As in Spark's own source, the delay begins at the last trigger that did not
        wait, also if it had no records.
        """
        min_offsets = self._options.min_offsets_per_trigger
        if min_offsets is None or self._target is not None:
            return False
        now = time.monotonic()
        new = sum(offset - begin.get(tp, 0) for tp, offset in latest.items())
        if self._last_trigger is not None and new < min_offsets:
            waited_ms = (now - self._last_trigger) * 1000
            if waited_ms < self._options.max_trigger_delay_ms:
                return True
        self._last_trigger = now
        return False

    def _recent_latest(self, begin: Offsets) -> Offsets:
        """The latest offsets: the known ones only if they are recent, and not all read yet."""
        wait_s = self._latest_until - time.monotonic()
        if self._latest is not None and self._latest != begin and wait_s > 0:
            return self._latest
        time.sleep(max(wait_s, 0.0))
        return self._fetch_latest(begin)

    def _fetch_latest(self, known: Offsets) -> Offsets:
        self._latest = self._read_latest(known)
        self._latest_until = time.monotonic() + IDLE_WAIT_S
        return self._latest

    def _read_latest(self, known: Offsets) -> Offsets:
        reader = self._reader()
        must_exist = self._options.fail_on_data_loss
        existing = reader.partitions(must_exist=must_exist, warn=self._warn)
        return reader.latest(existing, known)

    def _warn(self, message: str) -> None:
        """Log a warning, unless the previous request had the same one: an idle query makes ten
        requests a second.
        """
        if message != self._last_warning:
            log.warning(message)
        self._last_warning = message

    def _reader(self) -> OffsetReader:
        return offset_reader(self._options)

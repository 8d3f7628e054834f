"""The reader engine: reads a range of a partition's offsets from the leader as Arrow record
batches.

Runs in the executors' Python workers. Memory is bounded by a fetch and its decoded form, not by the
range. The driver's Python processes, which Spark starts for each query, import this module too. So
modules for decoding are imported by the first read: numba takes longer than all others together.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from pyspark.sql.datasource import InputPartition

from kafkapy.client.cluster import Cluster
from kafkapy.client.fetch import FetchedBatches, fetch_batches
from kafkapy.client.first_connection import await_broker
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.offsets import EARLIEST, LATEST, OffsetRange, report_losses
from kafkapy.spark.source.options import SourceOptions
from kafkapy.spark.source.pushdown import ANY, Interval

log: Final = logging.getLogger("kafkapy.spark")

_LOSS_ERRORS: Final = frozenset(
    {
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)

clusters: Final[dict[frozenset[tuple[str, str]], Cluster]] = {}
"""This process's connections by client properties."""


class RangePartition(InputPartition):  # type: ignore[misc]
    """The input of a Spark task: one range of offsets, and the bounds of timestamps."""

    def __init__(self, offset_range: OffsetRange, timestamp_us: Interval = ANY) -> None:
        self.range = offset_range
        self.timestamp_us = timestamp_us


def cluster_of(properties: Mapping[str, str]) -> Cluster:
    """The connections to a cluster, which are kept, because a worker reads many ranges."""
    key = frozenset(properties.items())
    if key not in clusters:
        servers = properties["bootstrap.servers"]
        clusters[key] = Cluster(
            servers, properties, "kafkapy-spark", allocate=_allocate_uninitialized
        )
    return clusters[key]


def _allocate_uninitialized(size: int) -> memoryview:
    """Memory that is not zeroed. The heap keeps it between fetches, together with the memory of
    columns, because glibc maps only blocks that are larger than the largest one freed so far.
    """
    import numpy as np

    return np.empty(size, np.uint8).data


def read_range(
    options: SourceOptions, offset_range: OffsetRange, timestamp_us: Interval = ANY
) -> Iterator[Any]:
    """Yield the records of the range within the bounds of timestamps, as `pyarrow.RecordBatch`es of
    `options.columns`.

    Raises:
        DataLossError: offsets of the range do not exist any more, and `failOnDataLoss` is true.
        ApiError: REQUEST_TIMED_OUT if no leader responds for `kafkaConsumer.pollTimeoutMs`;
        CORRUPT_MESSAGE; other errors of the leader.
    """
    timeout = {"default.api.timeout.ms": str(options.poll_timeout_ms)}
    cluster = cluster_of(timeout | options.client_properties)
    tp, position, end = offset_range
    await_broker(cluster, cluster.api_timeout_ms)
    while position < end:
        try:
            for fetched in fetch_batches(
                cluster,
                tp,
                position,
                end,
                max_bytes=options.fetch_bytes,
                isolation_level=options.isolation_level,
            ):
                yield from _decode(fetched, OffsetRange(tp, position, end), options, timestamp_us)
                position = fetched.next_offset
            return
        except ApiError as error:
            if error.code not in _LOSS_ERRORS:
                raise
            position = _after_loss(cluster, options, OffsetRange(tp, position, end), error)


def _decode(
    fetched: FetchedBatches, rest: OffsetRange, options: SourceOptions, timestamp_us: Interval
) -> Iterator[Any]:
    """The records of one fetch within the range.

    Raises:
        ApiError: CORRUPT_MESSAGE, naming the partition, the offset and the fault.
    """
    with _without_garbage_collection():
        from kafkapy.record.columns import decode_columns
        from kafkapy.spark.source.arrow import fields_to_decode, record_batches
        from kafkapy.spark.source.segments import decode_before_corrupt

    tp, start, end = rest
    decode = partial(
        decode_columns,
        selection=fields_to_decode(options.columns),
        aborted=fetched.aborted_transactions,
    )
    try:
        for columns in decode_before_corrupt(decode, fetched.buffer, start, end):
            yield from record_batches(columns, tp, options.columns, timestamp_us)
            start = int(columns.offsets[-1]) + 1
    except ApiError as error:
        message = f"{tp} cannot be read from offset {start} on: {error.message}"
        raise ApiError(error.code, message) from error


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection during imports, which create no garbage: it takes a sixth of
    numba's import time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _after_loss(
    cluster: Cluster, options: SourceOptions, rest: OffsetRange, error: ApiError
) -> int:
    """The offset to continue from after a deletion of unread offsets.

    Raises:
        DataLossError: `failOnDataLoss` is true.
        ApiError: the leader does not return the offsets that are left; or `error` itself, if they
          exist again, so that the task is repeated.
    """
    tp = rest.topic_partition
    log_start, log_end = (_list_offset(cluster, tp, timestamp) for timestamp in (EARLIEST, LATEST))
    if log_start <= rest.start < log_end:
        raise error
    resume = min(log_start, rest.end) if log_start > rest.start else rest.end
    log_range = f"it has {log_start} to {log_end} now" if log_end >= 0 else error.code.name
    loss = f"{tp} offsets {rest.start} to {resume} cannot be read ({log_range})"
    report_losses([loss], options.fail_on_data_loss, log.warning)
    return resume


def _list_offset(cluster: Cluster, topic_partition: TopicPartition, timestamp: int) -> int:
    """The first or last offset of a partition; -1 if the partition does not exist.

    Raises:
        ApiError: the leader returns another error.
    """
    found = cluster.list_offsets({topic_partition: timestamp})[topic_partition]
    if found.error is not ErrorCode.NONE and found.error not in _LOSS_ERRORS:
        raise ApiError(found.error, f"Offsets of {topic_partition}: {found.reason}")
    return found.offset

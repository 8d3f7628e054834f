"""The sink: each task writes its rows with an idempotent producer of its own.

At least once: a task that Spark repeats writes its rows again, unless `exactly_once` is set. Within
a task nothing is written twice. A task succeeds when every row is acknowledged by all in-sync
replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from kafkapy.client.batch_producer import BatchProducer
from kafkapy.client.first_connection import await_broker
from kafkapy.client.properties import int_property
from kafkapy.client.transaction import Transaction
from kafkapy.common.errors import ApiError
from kafkapy.spark.sink import exactly_once
from kafkapy.spark.sink.sink_options import SinkOptions
from kafkapy.spark.workers.engine import cluster_of

TRANSACTION_TIMEOUT_MS: Final = 300_000
"""The time limit of a task with `exactlyOnce`, unless `kafka.transaction.timeout.ms` is set."""


class KafkapyBatchWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """A batch write. Rows are visible before the end of the job."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job = exactly_once.job_id()

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of a task, in an executor. Raises DeliveryError."""
        return write_task(self._options, self._job, iterator)


class KafkapyStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """A streaming write. It has no state, because Spark creates a new one for every micro-batch and
    every commit.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of a task, in an executor. Raises DeliveryError."""
        return write_task(self._options, "", iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing, since the rows are written already. May be called twice."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing, since written rows cannot be removed."""


def write_task(options: SinkOptions, job: str, batches: Iterable[Any]) -> WriterCommitMessage:
    """Write the rows of the running task, exactly once or at least once, as configured."""
    if options.exactly_once:
        name = exactly_once.transactional_id(options.transactional_id_prefix, job)
        write_transaction(options, name, batches)
    else:
        write_batches(options, batches)
    return WriterCommitMessage()


def write_batches(options: SinkOptions, batches: Iterable[Any]) -> None:
    """Write `pyarrow.RecordBatch`es and wait until all rows are acknowledged.

    Raises:
        DeliveryError: names the topic and the broker's error.
    """
    producer = BatchProducer(cluster_of(options.client_properties), options.producer)
    _write(options, producer, batches)


def write_transaction(options: SinkOptions, name: str, batches: Iterable[Any]) -> None:
    """Write the batches in a transaction with the given id, unless it was committed before.

    Raises:
        DeliveryError: nothing is committed. The transaction is aborted now, when it is begun again,
            or after its timeout.
        ApiError: the coordinator does not respond, or refuses. After a commit without a response,
            `is_committed` returns the outcome.
    """
    cluster = cluster_of(options.client_properties)
    await_broker(cluster, options.producer.max_block_ms)
    if exactly_once.is_committed(cluster, name):
        return
    timeout_ms = int_property(
        options.client_properties, "transaction.timeout.ms", TRANSACTION_TIMEOUT_MS
    )
    transaction = Transaction(cluster, name, timeout_ms)
    producer = BatchProducer(cluster, options.producer, transaction)
    is_written = False
    try:
        _write(options, producer, batches)
        is_written = True
    finally:
        if not is_written:
            producer.abandon()
            with suppress(ApiError):  # fenced or unreachable: the coordinator ends it
                transaction.end(committed=False)
    transaction.end(committed=True)


def _write(options: SinkOptions, producer: BatchProducer, batches: Iterable[Any]) -> None:
    # Imported here, because the driver's processes import this module and never encode rows.
    from kafkapy.spark.sink.row_writer import RowWriter

    writer = RowWriter(producer, options.producer, options.topic)
    for batch in batches:
        writer.write(batch)
    writer.finish()

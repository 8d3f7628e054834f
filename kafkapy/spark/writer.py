"""The sink: each task writes its rows with an idempotent producer of its own (librdkafka).

At least once: a task that Spark runs again writes its rows again, unless `exactly_once` is asked
for. Within a task nothing is written twice. A task succeeds when every row is acknowledged by all
in-sync replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from kafkapy.client.librdkafka import producer_config
from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.spark import exactly_once
from kafkapy.spark.engine import cluster_of
from kafkapy.spark.sink_options import SinkOptions

TRANSACTION_TIMEOUT_MS: Final = "300000"
"""How long a task may take with `exactlyOnce`, unless `kafka.transaction.timeout.ms` says so."""

_PAUSE_S: Final = 0.1
_ANY_PARTITION: Final = -1  # the partitioner chooses
_NO_HEADERS: Final[dict[str, Any]] = {}

_Row = tuple[str, bytes | str | None, bytes | str | None, int]
"""Topic, value, key, partition."""


class DeliveryError(KafkapyError):
    """A row was not written."""


class KafkapyBatchWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """A batch write. Rows are visible before the job has ended."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job = exactly_once.job_id()

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Runs in an executor. Raises DeliveryError."""
        return write_task(self._options, self._job, iterator)


class KafkapyStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """A streaming write. Made anew for every micro-batch and once more for its commit: no state."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Runs in an executor. Raises DeliveryError."""
        return write_task(self._options, "", iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to do: the rows are there. May come twice."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing can be taken back."""


def write_task(options: SinkOptions, job: str, batches: Iterable[Any]) -> WriterCommitMessage:
    """Write the rows of the running task, once or at least once as the options say."""
    if options.exactly_once:
        name = exactly_once.transactional_id(options.transactional_id_prefix, job)
        write_transaction(options, name, batches)
    else:
        write_batches(options, batches)
    return WriterCommitMessage()


def write_batches(options: SinkOptions, batches: Iterable[Any]) -> None:
    """Write `pyarrow.RecordBatch`es and wait until all rows are acknowledged.

    Raises:
        DeliveryError: names the topic and what the broker or librdkafka says.
        ConfigError: a client property is wrong.
    """
    delivery = Delivery(options)
    delivery.send(batches)
    delivery.finish()


def write_transaction(options: SinkOptions, name: str, batches: Iterable[Any]) -> None:
    """Write the batches in the transaction of that id, unless it has been committed before.

    Raises:
        DeliveryError: nothing is written; the transaction is aborted.
        ConfigError: a client property is wrong.
        ApiError: the coordinator does not answer, or refuses.
    """
    if exactly_once.is_committed(cluster_of(options.client_properties), name):
        return
    delivery = Delivery(options, _transactional(options.client_properties, name))
    producer = delivery.producer
    try:
        exactly_once.insistently(producer.init_transactions)
        producer.begin_transaction()
        try:
            delivery.send(batches)
            delivery.finish()
            exactly_once.insistently(producer.commit_transaction)
        except (DeliveryError, KafkaException):
            exactly_once.insistently(producer.abort_transaction)
            raise
    except KafkaException as error:
        raise DeliveryError(f"Transaction {name}: {error.args[0].str()}") from None


def _transactional(properties: Mapping[str, str], name: str) -> dict[str, str]:
    """Settings of a transactional producer: a row must be delivered before its transaction ends."""
    timeout = properties.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
    delivery = properties.get("delivery.timeout.ms", timeout)
    return {
        "transactional.id": name,
        "transaction.timeout.ms": timeout,
        "message.timeout.ms": delivery,
    }


class _Failures:
    """What a producer tells of. It knows no producer, so that one ends, and closes its connections,
    with its task and not when garbage is collected."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.refusal: str | None = None

    def not_connected(self, error: KafkaError) -> None:
        """A connection failed. That is tried again, unless who we are is the reason."""
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self.refusal = error.str()

    def not_delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.rows.append(f"{message.topic()}-{message.partition()}: {error.str()}")


class Delivery:
    """One producer and what it could not deliver."""

    def __init__(self, options: SinkOptions, extra: dict[str, str] | None = None) -> None:
        """
        Raises:
            ConfigError: librdkafka does not know or accept a client property.
        """
        self._topic = options.topic
        self._failures = _Failures()
        settings: dict[str, Any] = {
            "linger.ms": "5",
            **producer_config(options.client_properties),
            **(extra or {}),
            # Only failures call back: an acknowledgement of each row would cost more than the row.
            "delivery.report.only.error": True,
            "on_delivery": self._failures.not_delivered,
            "error_cb": self._failures.not_connected,
        }
        try:
            self.producer = Producer(settings)
        except KafkaException as error:
            raise ConfigError(f"Kafka options of the sink: {error.args[0].str()}") from None

    def send(self, batches: Iterable[Any]) -> None:
        """Queue the rows; stops early when one has failed.

        Raises:
            DeliveryError: a row has no topic, or is refused before it is sent.
        """
        produce = self.producer.produce
        for batch in batches:
            for row, headers in _rows(batch, self._topic):
                try:
                    produce(*row, **headers)
                except (BufferError, KafkaException):
                    self._queue(row, headers)
            self.producer.poll(0)
            if self._failures.rows or self._failures.refusal:
                break

    def finish(self) -> None:
        """Wait for all acknowledgements. Raises DeliveryError for rows that were not written."""
        while self.producer.flush(_PAUSE_S):
            if self._failures.refusal is not None:
                self.producer.purge()
                raise DeliveryError(f"No rows can be written: {self._failures.refusal}")
        if rows := self._failures.rows:
            raise DeliveryError(f"{len(rows)} rows were not written, the first to {rows[0]}")

    def _queue(self, row: _Row, headers: dict[str, Any]) -> None:
        """Queue a row; while the queue is full, wait for acknowledgements."""
        while self._failures.refusal is None:  # `finish` says so
            try:
                self.producer.produce(*row, **headers)
                return
            except BufferError:
                self.producer.poll(_PAUSE_S)
            except KafkaException as error:  # refused here: too large, no such partition
                raise DeliveryError(f"A row for topic {row[0]}: {error.args[0].str()}") from None


def _rows(batch: Any, topic: str | None) -> Iterator[tuple[_Row, dict[str, Any]]]:
    """Topic, value, key and partition of each row, and its headers, as `Producer.produce` takes
    them.

    Raises:
        DeliveryError: a row has no topic.
    """

    def column(name: str, otherwise: object) -> Iterable[Any]:
        index = batch.schema.get_field_index(name)
        return batch.column(index).to_pylist() if index >= 0 else repeat(otherwise, batch.num_rows)

    topics = repeat(topic, batch.num_rows) if topic is not None else list(column("topic", None))
    if topic is None and None in topics:
        raise DeliveryError(
            "null topic present in the data. Use the topic option for setting a topic."
        )
    partitions = (_ANY_PARTITION if p is None else p for p in column("partition", _ANY_PARTITION))
    headers = (
        {"headers": [(header["key"], header["value"]) for header in row]} if row else _NO_HEADERS
        for row in column("headers", None)
    )
    rows = zip(topics, column("value", None), column("key", None), partitions, strict=True)
    return zip(rows, headers, strict=True)

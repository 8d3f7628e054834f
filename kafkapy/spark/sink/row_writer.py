"""Adds rows to the open batches of their partitions, with the partitioning of Kafka's producer.

The partition of a row is that of its column `partition`, else that of its key's murmur2 hash. Rows
without a key fill a batch of one partition, then of another (KIP-480), which makes large batches.
Partitions without a leader get none of these, unless no partition has one.
Runs in the executors' Python workers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kafkapy.client.batch_producer import BatchProducer, DeliveryError
from kafkapy.client.producer_settings import ProducerSettings
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.batch_header import HEADER_SIZE
from kafkapy.record.row_batches import OpenBatch, RowColumns, RowTooLarge
from kafkapy.record.row_kernels import partitions_of_keys
from kafkapy.spark.source.arrow_rows import column, int32s, row_columns

_ANY: Final = -1

_Rows = NDArray[np.int32]
"""Indices of rows."""


class RowWriter:
    """Encodes Kafka's record batches, and passes full ones to a producer."""

    def __init__(
        self, producer: BatchProducer, settings: ProducerSettings, topic: str | None
    ) -> None:
        """`topic` takes precedence over the column `topic`."""
        self._producer = producer
        self._settings = settings
        self._topic = topic
        self._partitions: dict[str, int] = {}
        self._available: dict[str, list[int]] = {}
        self._sticky: dict[str, int] = {}
        self._open: dict[TopicPartition, OpenBatch] = {}

    def write(self, batch: Any) -> None:
        """Add the rows of a `pyarrow.RecordBatch`.

        Raises:
            DeliveryError: a row has no topic, is too large, or names a partition that does not
              exist; or an earlier row could not be written.
        """
        columns = row_columns(batch)
        _check_headers(column(batch, "headers"))
        now_ms = int(time.time() * 1000)
        partition_column = column(batch, "partition")
        partitions = None if partition_column is None else _explicit_partitions(partition_column)
        keys = None if self._settings.ignore_keys else column(batch, "key")
        by_key = keys is not None and keys.null_count < len(keys)
        for topic, rows in self._by_topic(batch):
            if topic not in self._partitions:
                self._load_partitions(topic)
            row_partitions = self._choose_partitions(topic, columns, partitions, by_key)
            self._write_topic(topic, rows, columns, row_partitions, now_ms)
        if sum(each.size for each in self._open.values()) > self._settings.buffer_bytes:
            self._close_all()

    def finish(self) -> None:
        """Send the open batches, and wait until all are acknowledged. Raises DeliveryError."""
        self._close_all()
        self._producer.flush()

    def _by_topic(self, batch: Any) -> Iterator[tuple[str, _Rows]]:
        """The rows of each topic, in order."""
        if self._topic is not None:
            yield self._topic, np.arange(batch.num_rows, dtype=np.int32)
            return
        topics = column(batch, "topic")
        if topics is None or topics.null_count:
            raise DeliveryError(
                "null topic present in the data. Use the topic option for setting a topic."
            )
        coded = topics.dictionary_encode()
        names = coded.dictionary.to_pylist()
        for code, rows in _positions_by_code(int32s(coded.indices, null=0)):
            yield names[code], rows

    def _load_partitions(self, topic: str) -> None:
        leaders = self._producer.leaders(topic)
        self._partitions[topic] = len(leaders)
        with_leader = [index for index, leader in enumerate(leaders) if leader >= 0]
        self._available[topic] = with_leader or list(range(len(leaders)))

    def _choose_partitions(
        self, topic: str, columns: RowColumns, explicit: NDArray[np.int32] | None, by_key: bool
    ) -> NDArray[np.int32] | None:
        """The partition of each row, -1 for any; None if every row may go to any partition."""
        if not by_key:
            return explicit
        rows = len(columns.keys.offsets) - 1
        row_partitions = np.full(rows, _ANY, np.int32) if explicit is None else explicit.copy()
        partitions_of_keys(*columns.keys, self._partitions[topic], row_partitions)
        return row_partitions

    def _write_topic(
        self,
        topic: str,
        rows: _Rows,
        columns: RowColumns,
        row_partitions: NDArray[np.int32] | None,
        now_ms: int,
    ) -> None:
        if row_partitions is None:
            self._write_sticky(topic, rows, columns, now_ms)
            return
        for partition, group in _positions_by_code(row_partitions[rows]):
            remaining = rows[group]
            if partition == _ANY:
                self._write_sticky(topic, remaining, columns, now_ms)
                continue
            self._check_partition(topic, partition)
            topic_partition = TopicPartition(topic, partition)
            while len(remaining):
                remaining = self._fill(topic_partition, remaining, columns, now_ms)

    def _check_partition(self, topic: str, partition: int) -> None:
        if not 0 <= partition < self._partitions[topic]:
            self._load_partitions(topic)  # it may have grown
        count = self._partitions[topic]
        if not 0 <= partition < count:
            raise DeliveryError(
                f"A row for topic {topic}: there is no partition {partition}, only 0 to {count - 1}"
            )

    def _write_sticky(self, topic: str, rows: _Rows, columns: RowColumns, now_ms: int) -> None:
        """Fill batches one by one, each for another partition."""
        while len(rows):
            if topic not in self._sticky:
                self._sticky[topic] = random.choice(self._available[topic])
            topic_partition = TopicPartition(topic, self._sticky[topic])
            rows = self._fill(topic_partition, rows, columns, now_ms)
            if topic_partition not in self._open:
                self._sticky[topic] = self._next_sticky_partition(topic_partition)

    def _next_sticky_partition(self, full: TopicPartition) -> int:
        others = [each for each in self._available[full.topic] if each != full.partition]
        return random.choice(others or [full.partition])

    def _fill(
        self, topic_partition: TopicPartition, rows: _Rows, columns: RowColumns, now_ms: int
    ) -> _Rows:
        """Add rows to the open batch of a partition. A full batch is sent, and the remaining rows
        are returned.
        """
        batch = self._open.get(topic_partition)
        if batch is None:
            # A batch.size of 0 means batches of one row; an open one has room for its header.
            limit = max(self._settings.batch_bytes, HEADER_SIZE)
            batch = self._open[topic_partition] = OpenBatch(limit, self._settings.request_bytes)
        try:
            added = batch.add(columns, rows, now_ms)
        except RowTooLarge as error:
            raise DeliveryError(
                f"A row for topic {topic_partition.topic} is {error.size} bytes when serialized"
                f" which is larger than {self._settings.request_bytes}, which is the value of the "
                "max.request.size configuration"
            ) from None
        if added < len(rows):
            del self._open[topic_partition]
            self._producer.send(topic_partition, self._close_batch(batch))
        return rows[added:]

    def _close_all(self) -> None:
        for topic_partition, batch in self._open.items():
            self._producer.put(topic_partition, self._close_batch(batch))
        self._open.clear()
        self._producer.flush()

    def _close_batch(self, batch: OpenBatch) -> Any:
        return batch.close(self._settings.codec, self._settings.level)


def _check_headers(headers: Any) -> None:
    """Check that headers have keys. Java's consumers cannot read past a record without them.

    Raises:
        DeliveryError: a row has a header that is null, or whose key is null.
    """
    if headers is not None:
        pairs = headers.flatten()
        if pairs.null_count or pairs.field(0).null_count:
            raise DeliveryError("A row has a header that is null, or whose key is null")


def _explicit_partitions(partitions: Any) -> NDArray[np.int32]:
    """The column `partition`, with -1 for null.

    Raises:
        DeliveryError: a row has -1 itself, which the producers of Kafka refuse.
    """
    if np.any(int32s(partitions, null=0) == _ANY):
        raise DeliveryError("A row: there is no partition -1; null is for any partition")
    return int32s(partitions, null=_ANY)


def _positions_by_code(codes: NDArray[np.int32]) -> Iterator[tuple[int, _Rows]]:
    """Each code with its positions, in order."""
    order = np.argsort(codes, kind="stable").astype(np.int32)
    ordered = codes[order]
    boundaries = np.flatnonzero(np.diff(ordered)) + 1
    for group in np.split(order, boundaries) if len(codes) else ():
        yield int(codes[group[0]]), group

"""Consume, transform, produce in transactions (KIP-98), and readers of the output.

with Copier(servers, "in", "out", total) as copier:
    copier.wait_for(total // 2)
    ...                              # a fault
assert committed(servers, "out") == ...
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.harness.processes.waiting import wait_until

LIMIT_S = 120.0
_CALL_S = 20.0
_STUCK_S = 2 * _CALL_S
_RECORDS = 20
_ABORT_EVERY = 5
_EOF = KafkaError._PARTITION_EOF


def fill(servers: str, topic: str, total: int) -> None:
    """Put the numbers below `total` into a topic."""
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for number in range(total):
        producer.produce(topic, str(number), key=str(number))
    assert producer.flush(LIMIT_S) == 0


@contextmanager
def _reader(servers: str, isolation: str, group: str = "reader") -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _partitions(consumer: Consumer, topic: str) -> list[TopicPartition]:
    found = consumer.list_topics(topic, timeout=_CALL_S).topics[topic].partitions
    return [TopicPartition(topic, partition, 0) for partition in found]


def read(
    servers: str, topic: str, isolation: str = "read_committed", partition: int | None = None
) -> list[str]:
    """All values of a topic, or of one partition, up to the present end for this isolation
    level."""
    values: list[str] = []
    with _reader(servers, isolation) as consumer:
        wait_until(lambda: bool(_partitions(consumer, topic)), f"the partitions of {topic}")
        partitions = [
            found
            for found in _partitions(consumer, topic)
            if partition is None or found.partition == partition
        ]
        consumer.assign(partitions)
        ended: set[int] = set()

        def is_read() -> bool:
            for message in consumer.consume(500, 0.2):
                if message.error() is None:
                    values.append(message.value().decode())
                else:
                    assert message.error().code() == _EOF, message.error()
                    ended.add(message.partition())
            return len(ended) == len(partitions)

        wait_until(is_read, f"{topic} is read", LIMIT_S)
    return values


class Copier:
    """A thread that copies a topic in transactions of 20 records, until `total` are committed.

    It aborts every fifth transaction. After an error it starts a new instance with the same
    transactional id. It also does so when a call hangs beyond its limit: librdkafka waits without
    end for a group coordinator that has left the metadata (librdkafka 5456, 5511). The hanging
    instance is fenced, and ends when the broker is back. At the end it waits for the completion of
    the last transaction, so that readers of committed records see all records: a commit is answered
    before its markers are written.
    """

    def __init__(self, servers: str, source: str, target: str, total: int) -> None:
        self.copied = 0
        self.aborted = 0
        self._servers = servers
        self._source, self._target, self._total = source, target, total
        self._stop = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"copy {source}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._stop.set()
        self._thread.join(LIMIT_S)
        self._stop.set()
        self._thread.join(LIMIT_S)
        if error is None and self._fault is not None:
            raise self._fault

    def wait_for(self, copied: int) -> None:
        wait_until(
            lambda: self._fault is not None or self.copied >= copied, f"{copied} copied", LIMIT_S
        )

    def _run(self) -> None:
        instances = []
        while self._fault is None and not self._is_done():
            instance = _Instance(self)
            instances.append(instance)
            instance.start()
            instance.wait_until_ended_or_stuck()
        for instance in instances:
            instance.join(LIMIT_S)
        if self._fault is None and not self._stop.is_set():
            try:
                self.producer().init_transactions(LIMIT_S)  # once the last transaction is complete
            except KafkaException as fault:
                self._fault = fault

    def producer(self) -> Producer:
        """A new instance of the producer."""
        return Producer(
            {
                "bootstrap.servers": self._servers,
                "transactional.id": f"copy-{self._source}",
                "transaction.timeout.ms": 10_000,
                # It keeps a coordinator that is gone until its metadata is this old.
                "metadata.max.age.ms": 2000,
                "log_level": 0,
            }
        )

    def _is_done(self) -> bool:
        return self.copied >= self._total or self._stop.is_set()


class _Instance(threading.Thread):
    """One instance of a copier, until it is done, has an error, or is given up."""

    def __init__(self, copier: Copier) -> None:
        super().__init__(name=f"an instance of {copier._thread.name}")
        self._copier = copier
        self._calls = 0
        self._is_abandoned = False

    def wait_until_ended_or_stuck(self) -> None:
        calls = -1
        while self.is_alive() and self._calls != calls:
            calls = self._calls
            self.join(_STUCK_S)
        self._is_abandoned = True

    def run(self) -> None:
        try:
            self._copy()
        except BaseException as fault:
            self._copier._fault = fault
            raise

    def _copy(self) -> None:
        copier = self._copier
        producer = copier.producer()
        with _reader(copier._servers, "read_committed", f"copy-{copier._source}") as consumer:
            try:
                producer.init_transactions(_CALL_S)
                self._calls += 1
                partitions = _partitions(consumer, copier._source)
                committed = consumer.committed(partitions, timeout=_CALL_S)
                consumer.assign(committed)
                if not self._is_abandoned:
                    copier.copied = sum(max(0, p.offset) for p in committed)
                while not copier._is_done() and not self._is_abandoned:
                    self._transaction(producer, consumer, partitions)
                    self._calls += 1
            except KafkaException:
                return

    def _transaction(
        self, producer: Producer, consumer: Consumer, partitions: list[TopicPartition]
    ) -> None:
        copier = self._copier
        messages = [m for m in consumer.consume(_RECORDS, 1.0) if m.error() is None]
        if not messages:
            return
        producer.begin_transaction()
        for message in messages:
            producer.produce(copier._target, message.value(), key=message.key())
        positions = [p for p in consumer.position(partitions) if p.offset >= 0]
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), _CALL_S)
        self._calls += 1
        if (copier.copied // _RECORDS + copier.aborted) % _ABORT_EVERY == _ABORT_EVERY - 1:
            producer.flush(_CALL_S)
            producer.abort_transaction(_CALL_S)
            copier.aborted += 1
            back: dict[int, int] = {}
            for message in messages:
                partition = message.partition()
                back[partition] = min(message.offset(), back.get(partition, message.offset()))
            for partition, offset in back.items():
                consumer.seek(TopicPartition(copier._source, partition, offset))
            return
        self._commit(producer)
        if not self._is_abandoned:
            copier.copied += len(messages)

    def _commit(self, producer: Producer) -> None:
        """Commit, and retry after a timeout, which is no error of the transaction."""
        for _ in range(3):
            try:
                producer.commit_transaction(_CALL_S)
                return
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            self._calls += 1
        producer.commit_transaction(_CALL_S)

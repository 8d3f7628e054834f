"""Transactions on a cluster that fails: producers and their zombies, and copiers.

Each transactional id has two live producers. A new instance fences the other one, which continues
until it gets the error. A worker sends and polls in one transaction; a copier copies what it polls,
with its group's offsets in the transaction (KIP-98, KIP-447). One in five is aborted.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.harness.faults import chaos_workload
from tests.harness.faults.anomalies import (
    PRODUCER_STEP,
    Anomalies,
    Mode,
    Outcome,
    Poll,
    Send,
    run_of,
)
from tests.harness.faults.chaos_run import GROUP, TOPIC, Workload, create_topic
from tests.harness.faults.chaos_workload import (
    PADDING,
    PRODUCER_LOG_CONFIG,
    QUICK_TO_RECONNECT,
    Poller,
    Reader,
    Sender,
    logger_to,
)
from tests.harness.faults.transaction_anomalies import (
    ALLOWED,
    CopiedTopic,
    Instance,
    Key,
    PolledRecords,
    SentRecord,
    Transaction,
    TransactionHistory,
    TransactionOutcome,
)

COPIES = f"{TOPIC}-copies"
COPIER_GROUP = "copiers"
SETTINGS = {
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "offsets.topic.num.partitions": "4",
    "min.insync.replicas": "2",
}
ABORT_PROBABILITY = 0.2
TRANSACTION_LIMIT_S = 10.0
CALL_S = 20.0
CLOSE_S = 5.0
FENCED_ERRORS = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
AFTER_PURGE_ERRORS = {KafkaError.INVALID_TXN_STATE, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER}
"""Ends of librdkafka 2.16 that brokers of both kinds cause (docs/evidence/chaos.md)."""


class SenderParameters(NamedTuple):
    """The parameters of a sender. Several senders have the same transactional id."""

    servers: str
    history: TransactionHistory
    transactional_id: str
    numbers: Iterator[int]
    seed: int
    logs: Path


class TransactionalSender(Sender):
    """One of the live producers of a transactional id, in one instance after the other."""

    absence_s = (2.0, 8.0)
    """The seconds for which a fenced sender stays away. Its next instance fences the other one."""

    def __init__(self, parameters: SenderParameters) -> None:
        super().__init__(f"{parameters.transactional_id}-{parameters.seed}")
        self._servers = parameters.servers
        self._history = parameters.history
        self._id = parameters.transactional_id
        self._numbers = parameters.numbers
        self._values = itertools.count()
        self._has_purged = False
        self._chance = random.Random(parameters.seed)
        self._logger = logger_to(parameters.logs / f"{self.name}.log")

    def run(self) -> None:
        while not self._stopping.is_set():
            number = next(self._numbers)
            self._values = itertools.count(number * PRODUCER_STEP)
            self._has_purged = False
            instance = Instance(self._id, f"{self.name}.{number}", time.monotonic())
            producer = self._producer()
            try:
                producer.init_transactions(CALL_S)
                instance.init_done = time.monotonic()
                self._run_instance(producer, instance)
            except KafkaException as ended:
                self._note(ended)
            with suppress(KafkaException):  # the fatal error once more
                producer.purge()
                producer.poll(0)
            del producer
            self._stopping.wait(self._chance.uniform(*self.absence_s))
        for handler in self._logger.handlers:
            handler.close()

    def _note(self, failure: KafkaException) -> None:
        error = failure.args[0]
        self.failures[error.name()] += 1
        expected = FENCED_ERRORS | AFTER_PURGE_ERRORS if self._has_purged else FENCED_ERRORS
        if error.fatal() and error.code() not in expected:
            self.fatal_errors.append(f"{self.name}: {error}")

    def _producer(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._servers,
                "transactional.id": self._id,
                "transaction.timeout.ms": int(TRANSACTION_LIMIT_S * 1000),
                "request.timeout.ms": 5000,
                "linger.ms": 5,
                # It keeps a coordinator that is gone until its metadata is this old.
                "metadata.max.age.ms": 2000,
                **QUICK_TO_RECONNECT,
                **PRODUCER_LOG_CONFIG,
            },
            logger=self._logger,
        )

    def _run_instance(self, producer: Producer, instance: Instance) -> None:
        """Run one transaction after the other, until an error that needs a new instance."""
        while not self._stopping.is_set():
            transaction = Transaction(instance, time.monotonic())
            self._history.transactions.append(transaction)
            producer.begin_transaction()
            try:
                self._fill(producer, transaction)
                if self._chance.random() < ABORT_PROBABILITY:
                    self._abort(producer, transaction)
                else:
                    self._commit(producer, transaction)
            except KafkaException as failure:
                is_open = transaction.outcome is TransactionOutcome.ABORTED
                if not (is_open and failure.args[0].txn_requires_abort()):
                    raise
                self._note(failure)
                self._abort(producer, transaction)

    def _abort(self, producer: Producer, transaction: Transaction) -> None:
        self._has_purged |= any(sent.offset < 0 for sent in transaction.sent)
        producer.abort_transaction(CALL_S)
        self._seek_back(transaction)

    def _commit(self, producer: Producer, transaction: Transaction) -> None:
        """Commit, and retry after a timeout, which is no error of the transaction."""
        transaction.commit_called = time.monotonic()
        transaction.outcome = TransactionOutcome.UNKNOWN
        for attempt in itertools.count(1):
            try:
                producer.commit_transaction(CALL_S)
                break
            except KafkaException as failure:
                if attempt == 3 or not failure.args[0].retriable():
                    raise
        transaction.outcome = TransactionOutcome.COMMITTED
        self.acked += len(transaction.sent)

    def _send(self, producer: Producer, transaction: Transaction, key: Key) -> int:
        """Send the next value, and return it."""
        sent = SentRecord(key, next(self._values))
        transaction.sent.append(sent)
        value = b"%d %s" % (sent.value, PADDING)
        producer.produce(
            key.topic, value, partition=key.partition, on_delivery=delivery_callback(sent)
        )
        return sent.value

    def _fill(self, producer: Producer, transaction: Transaction) -> None:
        raise NotImplementedError

    def _seek_back(self, transaction: Transaction) -> None:
        """Return to the first records of an aborted transaction, if they must be copied again."""


def delivery_callback(sent: SentRecord) -> Callable[[KafkaError | None, Message], None]:
    """The callback that keeps a record's offset."""

    def note(error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is None and offset is not None and offset >= 0:
            sent.offset = offset

    return note


class Worker(TransactionalSender):
    """Sends to random partitions, and reads all with a consumer that outlives the producers."""

    def __init__(self, parameters: SenderParameters, partitions: int) -> None:
        super().__init__(parameters)
        self._partitions = partitions
        log = self._history.topics[TOPIC]
        self._poller = Poller(self._servers, TOPIC, partitions, log, self.name)

    def run(self) -> None:
        super().run()
        self.is_closing = True
        self._poller.close()

    def _fill(self, producer: Producer, transaction: Transaction) -> None:
        for _ in range(self._chance.randint(1, 4)):
            if self._chance.random() < 0.4:
                transaction.polled += [
                    PolledRecords(Key(TOPIC, poll.partition), list(poll.offsets), list(poll.values))
                    for poll in self._poller.poll(200)
                ]
                continue
            key = Key(TOPIC, self._chance.randrange(self._partitions))
            for _ in range(self._chance.randint(1, 10)):
                self._send(producer, transaction, key)
            self._stopping.wait(self._chance.uniform(0, 0.1))


class Copier(TransactionalSender):
    """A member of the group of copiers; each instance has a consumer of its own."""

    absence_s = (5.0, 30.0)  # each time the group is rebalanced

    def __init__(self, parameters: SenderParameters, origin: dict[int, int]) -> None:
        super().__init__(parameters)
        self._origin = origin
        self._batch: list[Message] = []

    def _run_instance(self, producer: Producer, instance: Instance) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": COPIER_GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 10_000,
                "max.poll.interval.ms": int(3 * CALL_S * 1000),
                "fetch.wait.max.ms": 200,
                **QUICK_TO_RECONNECT,
            }
        )
        self._consumer.subscribe([TOPIC], on_revoke=self._revoked, on_lost=self._revoked)
        try:
            super()._run_instance(producer, instance)
        finally:
            self._close()

    def _close(self) -> None:
        """Leave the group, and close: librdkafka may never return from a rebalance that it serves
        while it closes, and keeps the interpreter's lock."""
        self._consumer.unsubscribe()
        end = time.monotonic() + CLOSE_S
        while self._consumer.assignment() and time.monotonic() < end:
            self._consumer.poll(0.1)
        self._consumer.close()

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Drop the batch: the next owner of these partitions copies it."""
        self._batch.clear()

    def _fill(self, producer: Producer, transaction: Transaction) -> None:
        self._batch.clear()
        end = time.monotonic() + 0.3
        while len(self._batch) < 50 and time.monotonic() < end:
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self._batch.append(message)
        at = time.monotonic()
        positions: dict[int, int] = {}
        for message in self._batch:
            partition, offset = message.partition(), message.offset()
            value = int(message.value().split(b" ", 1)[0])
            transaction.polled.append(PolledRecords(Key(TOPIC, partition), [offset], [value]))
            row = run_of([(offset, value)])
            poll = Poll(self.name, Mode.SUBSCRIBE, partition, *row, at)
            self._history.topics[TOPIC].polls.append(poll)
            copy = self._send(producer, transaction, Key(COPIES, partition))
            self._origin[copy] = value
            positions[partition] = offset + 1
        if positions:
            self._send_offsets(producer, positions)

    def _send_offsets(self, producer: Producer, positions: dict[int, int]) -> None:
        """Send offsets in a thread, which is abandoned if it does not end: librdkafka may never
        return from this call after the group's coordinator was killed (its issues 5456, 5511)."""
        offsets = [TopicPartition(TOPIC, partition, at) for partition, at in positions.items()]
        group = self._consumer.consumer_group_metadata()
        failed: list[KafkaException] = []

        def call() -> None:
            try:
                producer.send_offsets_to_transaction(offsets, group, CALL_S)
            except KafkaException as failure:
                failed.append(failure)

        thread = threading.Thread(target=call, name=f"offsets of {self.name}", daemon=True)
        thread.start()
        thread.join(2 * CALL_S)
        if thread.is_alive():
            self.failures["send_offsets_to_transaction does not return"] += 1
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if failed:
            raise failed[0]

    def _seek_back(self, transaction: Transaction) -> None:
        first: dict[int, int] = {}
        for poll in transaction.polled:
            first.setdefault(poll.key.partition, poll.offsets[0])
        for partition, offset in first.items():
            with suppress(KafkaException):  # not assigned any more
                self._consumer.seek(TopicPartition(TOPIC, partition, offset))


class TransactionWorkload(Workload):
    """Two ids of workers and two of copiers, a reader of each topic, and a group."""

    groups = (GROUP, COPIER_GROUP)

    def _start(self, rate: float) -> None:
        del rate  # as fast as transactions go
        cluster, partitions = self.cluster, self._partitions
        servers = cluster.bootstrap_servers
        create_topic(cluster, COPIES, partitions, 3, 2)
        self.transactions = TransactionHistory([TOPIC, COPIES])
        self._origin: dict[int, int] = {}
        numbers = itertools.count()
        parameters = [
            [
                SenderParameters(
                    servers, self.transactions, f"{role}-{n % 2}", numbers, n, cluster.directory
                )
                for n in range(4)
            ]
            for role in ("worker", "copier")
        ]
        self.workers = [Worker(parameters, partitions) for parameters in parameters[0]]
        self.copiers = [Copier(parameters, self._origin) for parameters in parameters[1]]
        self.writers = [*self.workers, *self.copiers]
        log, copies = (self.transactions.topics[topic] for topic in (TOPIC, COPIES))
        is_mixed = cluster.is_mixed
        self.readers = [
            Reader(Poller(servers, TOPIC, partitions, log, "assigned", beside_apache=is_mixed)),
            Reader(Poller(servers, TOPIC, partitions, log, "member", GROUP)),
            Reader(Poller(servers, COPIES, partitions, copies, "assigned", beside_apache=is_mixed)),
        ]
        for thread in self.writers:
            thread.start()

    def _drain(self) -> list[int]:
        """Drain. A last record in each partition proves that no transaction before it is open."""
        servers, partitions = self.cluster.bootstrap_servers, self._partitions
        for worker in self.workers:
            try:
                worker.stop()
            except AssertionError:
                if not (self.cluster.is_mixed and worker.is_closing):
                    raise
        ends = self._close(TOPIC)
        self._wait_until_read(self.readers[:2], ends)
        self._wait_until_committed(COPIER_GROUP, TOPIC, ends)
        for copier in self.copiers:
            copier.stop()
        at = dict(enumerate(chaos_workload.committed(servers, COPIER_GROUP, TOPIC, partitions)))
        self.transactions.copied.append(CopiedTopic(TOPIC, COPIES, at, self._origin))
        self._wait_until_read(self.readers[2:], self._close(COPIES))
        return ends

    def _close(self, topic: str) -> list[int]:
        """Write a record to each partition without a transaction. Returns the log ends."""
        producer = Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "enable.idempotence": True,
                **QUICK_TO_RECONNECT,
            }
        )
        closing = [SentRecord(Key(topic, p), 10**17 + p) for p in range(self._partitions)]
        for sent in closing:
            value, partition = b"%d" % sent.value, sent.key.partition
            producer.produce(topic, value, partition=partition, on_delivery=delivery_callback(sent))
        assert producer.flush(chaos_workload.DELIVERY_LIMIT_S) == 0, "closing records not sent"
        for sent in closing:
            send = Send(sent.key.partition, sent.value, Outcome.ACKED, sent.offset)
            self.transactions.topics[topic].sends.append(send)
        return [sent.offset + 1 for sent in closing]

    def _judge(self) -> tuple[Anomalies, Anomalies]:
        found = self.transactions.judge()
        return found, {name: found.pop(name) for name in ALLOWED}

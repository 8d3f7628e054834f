"""Producers and consumers that keep a history while the cluster under them fails.

Each has one thread. Producers are idempotent with acks=all. An assigned reader reads all records
from the beginning, and a group member its share.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.harness.faults.anomalies import PRODUCER_STEP, History, Mode, Outcome, Poll, Send, run_of
from tests.harness.faults.fault_cluster import wait_until
from tests.harness.faults.former_leaders import Refusal, refusal
from tests.harness.processes.waiting import join

PADDING = b"x" * 80
DELIVERY_LIMIT_S = 90.0
STOP_LIMIT_S = DELIVERY_LIMIT_S + 30
BURST_RECORDS = 2
"""Records that a writer produces to a partition in one go: half the requests of one at a time."""
_SILENCE_S = 10.0
_WITHOUT_MEMBERS = (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)
"""The time without records after which an assigned consumer assigns its partitions again."""
QUICK_TO_RECONNECT = {
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "socket.timeout.ms": 6000,
    "topic.metadata.refresh.interval.ms": 5000,
    "log_level": 0,
}


UNKNOWN_PARTITION_ERRORS = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}

_PROTOCOLS: Mapping[Mode, Mapping[str, str | int]] = {
    Mode.ASSIGN: {},
    Mode.SUBSCRIBE: {"session.timeout.ms": 10_000},
    Mode.CONSUMER: {"group.protocol": "consumer"},
}

PRODUCER_LOG_CONFIG = {"debug": "eos", "log_level": 7}
"""Configs with which librdkafka logs epochs, sequences and transactions."""
MEMBER_LOG_CONFIG = {"debug": "cgrp", "log_level": 7}
"""Configs with which librdkafka logs the events of a group member."""


def logger_to(file: Path) -> logging.Logger:
    """A logger for librdkafka; the caller closes its handlers."""
    logger = logging.Logger(file.stem)
    handler = logging.FileHandler(file, delay=True)
    handler.setFormatter(logging.Formatter("[%(asctime)s] %(message)s"))
    logger.addHandler(handler)
    return logger


class ClientThread(threading.Thread):
    """A thread with clients of librdkafka, which runs until `stop`.

    `is_closing` is set once it only closes its consumer.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.is_closing = False
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Stop, after the last answer. Fails if a call of librdkafka does not return."""
        self._stopping.set()
        join(self, STOP_LIMIT_S)

    def abandon(self) -> None:
        """Stop, also with records in flight."""
        self.stop()


class Sender(ClientThread):
    """A client thread that produces."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.acked = 0
        self.failures: Counter[str] = Counter()
        self.fatal_errors: list[str] = []
        self.refusals: list[Refusal] = []


class Writer(Sender):
    """Sends to each partition in turn, about `rate` records a second, until `stop`.

    A producer with a fatal error is replaced; `fatal_errors` has the errors. The file `log` has
    librdkafka's log of epochs and sequences.

    `beside_apache` is for clusters with brokers of Apache Kafka. If one of them refuses a batch and
    accepts the next, librdkafka loses or duplicates records (docs/decisions/0009), so only one
    request is in flight. A broker that has just started returns no topics, so produce may fail.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        partitions: int,
        history: History,
        rate: float,
        number: int,
        log: Path,
        beside_apache: bool,
    ) -> None:
        super().__init__(f"writer-{number}")
        self._logger = logger_to(log)
        self._servers = servers
        self._topic = topic
        self._partitions = partitions
        self._history = history
        self._interval_s = BURST_RECORDS * partitions / rate
        self._number = number
        self._beside_apache = beside_apache
        self._next = [0] * partitions
        self._abandoned = False
        self._reason = ""
        self.start()

    def abandon(self) -> None:
        self._abandoned = True
        self.stop()

    def run(self) -> None:
        producer = self._producer()
        while not self._stopping.wait(self._interval_s):
            try:
                self._send_to_all(producer)
            except KafkaException as error:
                if self._beside_apache and error.args[0].code() == KafkaError._UNKNOWN_TOPIC:
                    self.failures["_UNKNOWN_TOPIC"] += 1
                    producer.poll(0.1)
                    continue
                # Fatal: the callbacks of records in flight report an unknown outcome. librdkafka's
                # binding may raise the same error here once more, as a SystemError.
                with contextlib.suppress(KafkaException, SystemError):
                    producer.flush(10)  # calls back with the reason
                self.fatal_errors.append(self._reason or str(error.args[0]))
                self._number += 10
                self._next = [0] * self._partitions
                self._reason = ""
                producer = self._producer()
        if self._abandoned:
            producer.purge()
        left = producer.flush(DELIVERY_LIMIT_S + 10)
        for handler in self._logger.handlers:
            handler.close()
        assert left == 0, f"{left} records without an answer"

    def _producer(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "queue.buffering.max.messages": 5000,
                "delivery.timeout.ms": int(DELIVERY_LIMIT_S * 1000),
                "request.timeout.ms": 5000,
                "max.in.flight.requests.per.connection": 1 if self._beside_apache else 5,
                **QUICK_TO_RECONNECT,
                **PRODUCER_LOG_CONFIG,
                "error_cb": self._note,
            },
            logger=self._logger,
        )

    def _note(self, error: KafkaError) -> None:
        if error.fatal():
            self._reason = error.str()
            self.refusals.append(refusal(self._reason))

    def _send_to_all(self, producer: Producer) -> None:
        try:
            for index in range(BURST_RECORDS * self._partitions):
                self._send(producer, index % self._partitions)
            producer.poll(0)
        except BufferError:
            producer.poll(0.1)

    def _send(self, producer: Producer, partition: int) -> None:
        value = self._number * PRODUCER_STEP + self._next[partition]
        producer.produce(
            self._topic,
            b"%d %s" % (value, PADDING),
            partition=partition,
            on_delivery=self._delivery_callback(partition, value),
        )
        self._next[partition] += 1

    def _delivery_callback(
        self, partition: int, value: int
    ) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                known = offset if offset is not None and offset >= 0 else -1
                self._history.sends.append(Send(partition, value, Outcome.ACKED, known))
                self.acked += 1
            else:
                self.failures[error.name()] += 1
                never_sent = error.code() == KafkaError._PURGE_QUEUE
                outcome = Outcome.FAILED if never_sent else Outcome.UNKNOWN
                self._history.sends.append(Send(partition, value, outcome))

        return note


class Poller:
    """A consumer whose polls are recorded. `position[partition]` is the next expected offset.

    An assigned consumer never resets its position: one that is out of range is recorded in
    `lost_positions`, and the consumer continues there. It assigns its partitions again when a
    broker does not have the topic, as an Apache Kafka broker that has just started; otherwise
    librdkafka may not fetch any more. With `beside_apache`, it also does so after 10 s without
    records, since librdkafka does not always report the error.

    A member subscribes again after NOT_COORDINATOR: librdkafka does not repeat the OffsetFetch, and
    would not read the partitions (its issue 5586).
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        partitions: int,
        history: History,
        name: str,
        group: str | None = None,
        mode: Mode = Mode.SUBSCRIBE,
        log: Path | None = None,
        *,
        beside_apache: bool = False,
    ) -> None:
        """A member of `group`, whose kind is `mode`, or an assigned consumer without a group.

        The file `log` has librdkafka's log of the group.
        """
        self.name = name
        self.mode = Mode.ASSIGN if group is None else mode
        self.position = [0] * partitions
        self.lost_positions: list[Refusal] = []
        self._silence_limit_s = _SILENCE_S if beside_apache and group is None else math.inf
        self._last_records_s = time.monotonic()
        self.errors: dict[str, int] = defaultdict(int)
        self._topic = topic
        self._history = history
        self._logger = None if log is None else logger_to(log)
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group or name,
                "enable.auto.commit": group is not None,
                "auto.commit.interval.ms": 1000,
                "auto.offset.reset": "earliest" if group else "error",
                **_PROTOCOLS[self.mode],
                "fetch.wait.max.ms": 200,
                **QUICK_TO_RECONNECT,
                **({} if log is None else MEMBER_LOG_CONFIG),
            },
            logger=self._logger or logging.getLogger(__name__),
        )
        if group is None:
            self._assign()
        else:
            self._consumer.subscribe([topic])

    def _assign(self) -> None:
        """Assign all partitions at the consumer's current positions."""
        positions = [TopicPartition(self._topic, p, at) for p, at in enumerate(self.position)]
        self._consumer.assign(positions)

    def poll(self, records: int = 500) -> list[Poll]:
        """Records that arrive within 0.2 s, by partition."""
        rows: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for message in self._consumer.consume(records, 0.2):
            error = message.error()
            if error is not None:
                self._on_error(error, message)
                continue
            value = int(message.value().split(b" ", 1)[0])
            rows[message.partition()].append((message.offset(), value))
            self.position[message.partition()] = message.offset() + 1
        at = time.monotonic()
        if rows or at - self._last_records_s > self._silence_limit_s:
            self._last_records_s = at
            if not rows:
                self._assign()
        found = [Poll(self.name, self.mode, p, *run_of(run), at) for p, run in rows.items()]
        self._history.polls += found
        return found

    def _on_error(self, error: KafkaError, message: Message) -> None:
        self.errors[error.name()] += 1
        if self.mode is not Mode.ASSIGN:
            if error.code() == KafkaError.NOT_COORDINATOR:
                self._consumer.unsubscribe()
                self._consumer.subscribe([self._topic])
            return
        if error.code() in UNKNOWN_PARTITION_ERRORS:
            self._assign()
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            partition = message.partition()
            text = f"partition {partition} position {self.position[partition]}: {error.str()}"
            self.lost_positions.append(refusal(text, partition))
            self._assign()

    def close(self) -> None:
        self._consumer.close()
        if self._logger is not None:
            for handler in self._logger.handlers:
                handler.close()


class Reader(ClientThread):
    """A client thread that polls."""

    def __init__(self, poller: Poller) -> None:
        super().__init__(poller.name)
        self.poller = poller
        self.start()

    def run(self) -> None:
        while not self._stopping.is_set():
            self.poller.poll()
        self.is_closing = True
        self.poller.close()


def high_watermarks(servers: str, topic: str, partitions: int, limit_s: float = 60.0) -> list[int]:
    """High watermarks of all partitions; retries, as new leaders lack one at first (KIP-207)."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "judge", **QUICK_TO_RECONNECT})
    found: list[int] = []

    def lacking() -> list[str]:
        try:
            found[:] = [
                consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=20)[1]
                for p in range(partitions)
            ]
        except KafkaException as error:
            return [str(error)]
        return []

    try:
        wait_until(lacking, limit_s, "no high watermarks")
        return found
    finally:
        consumer.close()


def committed(servers: str, group: str, topic: str, partitions: int) -> list[int]:
    """A group's committed offsets; 0 where there is none yet."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, **QUICK_TO_RECONNECT})
    try:
        wanted = [TopicPartition(topic, p) for p in range(partitions)]
        return [max(found.offset, 0) for found in consumer.committed(wanted, timeout=20)]
    finally:
        consumer.close()


def wait_for_empty_groups(servers: str, limit_s: float = 60.0) -> None:
    """Wait until no group has a member."""
    admin = AdminClient({"bootstrap.servers": servers, **QUICK_TO_RECONNECT})

    def lacking() -> list[str]:
        try:
            found = admin.list_consumer_groups(request_timeout=10).result()
        except KafkaException as error:
            return [str(error)]
        late = [
            f"{g.group_id} is {g.state}" for g in found.valid if g.state not in _WITHOUT_MEMBERS
        ]
        return late + [str(error) for error in found.errors]

    wait_until(lacking, limit_s, "groups are not empty")


def not_drained(pollers: list[Poller], ends: list[int]) -> list[str]:
    """Pollers that have not read up to `ends` yet: assigned ones, and the group as a whole."""
    late = []
    groups: dict[Mode, list[int]] = {}
    for poller in pollers:
        if poller.mode is Mode.ASSIGN:
            late += _late(poller.name, poller.position, ends)
        else:
            best = groups.setdefault(poller.mode, [0] * len(ends))
            groups[poller.mode] = [max(pair) for pair in zip(best, poller.position, strict=True)]
    for mode, position in groups.items():
        late += _late(mode.value, position, ends)
    return late


def _late(name: str, position: list[int], ends: list[int]) -> list[str]:
    return [
        f"{name} is at {at} of {end} in partition {partition}"
        for partition, (at, end) in enumerate(zip(position, ends, strict=True))
        if at < end
    ]

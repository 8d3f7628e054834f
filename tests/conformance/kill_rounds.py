"""Kill -9 in rounds while an idempotent acks=all producer writes and a group reads and commits.

One producer and one group live through all rounds, so the broker must restore producer state and
group offsets each time. Just before each kill a proxy loses answers: those batches are on disk, the
producer does not know it and sends them again. The values of a partition are 0, 1, 2, ...: a gap is
a loss, a repetition a double, and both show at once.
"""

from __future__ import annotations

import random
import subprocess
import threading
import time
from typing import Protocol

import confluent_kafka

from tests.harness.faults.lossy_proxy import LossyProxy
from tests.harness.processes.topics import create_topic

PARTITIONS = 3
PADDING = b"x" * 100
PROGRESS_LIMIT_S = 120
END_OF_PARTITION = confluent_kafka.KafkaError._PARTITION_EOF


class Killable(Protocol):
    """BrokerProcess and ApacheBroker."""

    bootstrap_servers: str
    port: int

    def start(self) -> object: ...
    def launch(self) -> None: ...
    def kill(self) -> None: ...
    def wait(self, limit_s: float) -> int: ...


class Writer:
    """A thread that writes until told to stop; knows the offset of each acknowledged value."""

    def __init__(self, servers: str, topic: str) -> None:
        self.acknowledged: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
        self.failures: list[str] = []
        self._topic = topic
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "queue.buffering.max.messages": 2000,
                "delivery.timeout.ms": 300_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            value, partition = divmod(number, PARTITIONS)
            try:
                self._producer.produce(
                    self._topic,
                    b"%d %s" % (value, PADDING),
                    partition=partition,
                    on_delivery=self._delivered,
                )
                number += 1
            except BufferError:
                self._producer.poll(0.05)
            self._producer.poll(0)
        left = self._producer.flush(PROGRESS_LIMIT_S)
        if left:
            self.failures.append(f"{left} records never delivered")

    def _delivered(
        self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        with self._changed:
            if error is not None:
                self.failures.append(str(error))
            else:
                value = int(message.value().split(b" ")[0])
                self.acknowledged[message.partition()][value] = message.offset()
            self._changed.notify_all()

    def wait_for(self, more: int) -> None:
        """Until `more` records have been acknowledged from now on."""
        with self._changed:
            wanted = self.count() + more
            reached = self._changed.wait_for(
                lambda: self.failures or self.count() >= wanted, PROGRESS_LIMIT_S
            )
        assert not self.failures, self.failures[:3]
        assert reached, f"no {more} acknowledgements in {PROGRESS_LIMIT_S} s"

    def abandon(self) -> None:
        """Stop writing, whatever is in flight."""
        self._stop.set()
        self._producer.purge()
        self._thread.join()

    def close(self) -> None:
        """Stop writing; every record written is acknowledged when this returns."""
        self._stop.set()
        self._thread.join()
        assert not self.failures, self.failures[:3]


class GroupReader:
    """Reads a little in each round in a new member of one group, and commits what it read."""

    def __init__(self, servers: str, topic: str) -> None:
        self._settings = {
            "bootstrap.servers": servers,
            "group.id": f"{topic}-readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "log_level": 0,
        }
        self._topic = topic
        self.next_value = [0] * PARTITIONS
        self.resumes = 0

    def read_and_commit(self, count: int) -> None:
        """Go on exactly where the last commit stopped; commit, and believe the answer."""
        consumer = confluent_kafka.Consumer(self._settings)
        seen: dict[int, int] = {}
        deadline = time.monotonic() + PROGRESS_LIMIT_S
        try:
            consumer.subscribe([self._topic])
            got = 0
            while got < count:
                assert time.monotonic() < deadline, f"the group read {got} of {count}"
                for message in consumer.consume(count - got, 0.1):
                    if message.error() is not None:
                        assert message.error().retriable(), message.error()
                        continue
                    self._check(message)
                    seen[message.partition()] = message.offset() + 1
                    got += 1
            offsets = [confluent_kafka.TopicPartition(self._topic, *item) for item in seen.items()]
            consumer.commit(offsets=offsets, asynchronous=False)
        finally:
            consumer.close()
        self.resumes += 1

    def _check(self, message: confluent_kafka.Message) -> None:
        partition, value = message.partition(), int(message.value().split(b" ")[0])
        wanted = self.next_value[partition]
        assert value == wanted, f"partition {partition}: read {value} where {wanted} was due"
        self.next_value[partition] += 1


def read_everything(servers: str, topic: str, partitions: int) -> list[list[tuple[int, int]]]:
    """(offset, value) of each partition in order, from the start to its high watermark."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "checker",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    found: list[list[tuple[int, int]]] = [[] for _ in range(partitions)]
    unfinished = set(range(partitions))
    deadline = time.monotonic() + PROGRESS_LIMIT_S
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in unfinished])
        while unfinished:
            assert time.monotonic() < deadline, f"partitions {sorted(unfinished)} do not end"
            for message in consumer.consume(5000, 0.1):
                if message.error() is None:
                    value = int(message.value().split(b" ")[0])
                    found[message.partition()].append((message.offset(), value))
                else:
                    assert message.error().code() == END_OF_PARTITION, message.error()
                    unfinished.discard(message.partition())
    finally:
        consumer.close()
    return found


def kill_while_starting(broker: Killable, after_s: float) -> None:
    """Kill a broker that is just recovering."""
    broker.launch()
    try:
        status = broker.wait(after_s)
        raise AssertionError(f"the broker ended with {status} while starting")
    except subprocess.TimeoutExpired:
        broker.kill()


def advertised(proxy: LossyProxy) -> dict[str, str]:
    """Settings that make a broker advertise the proxy, so that all clients connect through it."""
    return {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}


def run(broker: Killable, proxy: LossyProxy, topic: str, rounds: int, seed: int) -> str:
    """The whole story on a running broker that advertises `proxy`; one line that sums it up."""
    chance = random.Random(seed)
    proxy.target_port, servers = broker.port, proxy.address
    create_topic(servers, topic, PARTITIONS)
    writer, reader = Writer(servers, topic), GroupReader(servers, topic)
    try:
        for number in range(rounds):
            writer.wait_for(chance.randrange(500, 3000))
            reader.read_and_commit(chance.randrange(50, 400))
            if chance.random() < 0.5:
                writer.wait_for(chance.randrange(1, 500))
            proxy.lose_answers()
            broker.kill()
            proxy.deliver_answers()
            if number % 3 == 2:
                kill_while_starting(broker, chance.uniform(0.05, 0.6))
            broker.start()
        reader.read_and_commit(100)
    except BaseException:
        writer.abandon()
        raise
    writer.close()
    for partition, found in enumerate(read_everything(servers, topic, PARTITIONS)):
        values = [value for _, value in found]
        assert values == list(range(len(values))), f"partition {partition}: {disorder(values)}"
        at = {value: offset for offset, value in found}
        lost = [v for v, offset in writer.acknowledged[partition].items() if at.get(v) != offset]
        assert not lost, f"partition {partition}: acknowledged elsewhere or lost: {lost[:5]}"
    return f"{rounds} kills, {writer.count()} acknowledged records, {reader.resumes} group resumes"


def disorder(values: list[int]) -> str:
    """Where a sequence first leaves 0, 1, 2, ..."""
    for wanted, value in enumerate(values):
        if value != wanted:
            return f"{value} where {wanted} was due"
    return "in order"

"""The groups of Kafka 4 on a cluster that fails: a consumer group (KIP-848) and a share group
(KIP-932), whose members join and leave, beside the classic groups."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

from confluent_kafka import AcknowledgeType, KafkaError, KafkaException, Message, ShareConsumer

from kafkapy.admin.share_groups import alter_share_offsets, share_offsets
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition
from tests.harness.faults import java_copier, share_anomalies
from tests.harness.faults.anomalies import Anomalies, History, Mode, Outcome, Poll, run_of
from tests.harness.faults.chaos_run import (
    DRAIN_LIMIT_S,
    GROUP,
    Workload,
    create_topic,
)
from tests.harness.faults.chaos_workload import QUICK_TO_RECONNECT, Party, Poller, Reader
from tests.harness.faults.fault_cluster import wait_until
from tests.harness.faults.java_copier import JavaCopier
from tests.harness.faults.share_anomalies import Delivery, Fate, Place, Verb
from tests.harness.processes import apache_kafka

CONSUMERS = "chaos-consumers"
SHARERS = "chaos-sharers"
COPIERS = "chaos-copiers"
COPIES = "chaos-copies"
LOCK_S = 3.0
COUNT_LIMIT = 10
LATE_S = 15.0
CALL_S = 20.0
RELEASED, REJECTED, HELD_TOO_LONG = 0.1, 0.05, 0.02
SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "min.insync.replicas": "2",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
    "group.share.record.lock.duration.ms": str(int(LOCK_S * 1000)),
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.delivery.count.limit": str(COUNT_LIMIT),
}
TYPES = {
    Verb.ACCEPT: AcknowledgeType.ACCEPT,
    Verb.RELEASE: AcknowledgeType.RELEASE,
    Verb.REJECT: AcknowledgeType.REJECT,
}


class Visitor(Party):
    """A member of a group that leaves, and rejoins as a new member."""

    def __init__(self, name: str, seed: int) -> None:
        super().__init__(name)
        self._chance = random.Random(seed)
        self.start()

    def run(self) -> None:
        while not self._stopping.is_set():
            self._live(time.monotonic() + self._chance.uniform(10, 40))
            self._stopping.wait(self._chance.uniform(0, 5))

    def _live(self, end: float) -> None:
        raise NotImplementedError


class Consumer(Visitor):
    """A member of the consumer group."""

    def __init__(self, workload: GroupWorkload, seed: int) -> None:
        self._workload = workload
        super().__init__(f"consumer-{seed}", seed)

    def _live(self, end: float) -> None:
        poller = self._workload.poller(f"{self.name} until {end:.0f}", CONSUMERS, Mode.CONSUMER)
        while time.monotonic() < end and not self._stopping.is_set():
            poller.poll()
        poller.close()


class Sharer(Visitor):
    """A member of the share group. It accepts most records, and holds some for longer than their
    lock. Once it `accepts_all` it releases and rejects nothing."""

    def __init__(self, servers: str, topic: str, history: History, seed: int) -> None:
        self.deliveries: list[Delivery] = []
        self.accepts_all = False
        self._servers = servers
        self._topic = topic
        self._history = history
        super().__init__(f"sharer-{seed}", seed)

    def _live(self, end: float) -> None:
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": SHARERS,
                "share.acknowledgement.mode": "explicit",
                **QUICK_TO_RECONNECT,
            }
        )
        consumer.subscribe([self._topic])
        while time.monotonic() < end and not self._stopping.is_set():
            messages = [each for each in consumer.poll(0.2) or () if each.error() is None]
            if messages:
                self._acknowledge(consumer, self._kept(messages), messages)
        with suppress(KafkaException):  # then its session expires
            consumer.close()

    def _kept(self, messages: Iterable[Message]) -> list[Delivery]:
        """Record the deliveries, and choose an acknowledgement for each."""
        at = time.monotonic()
        found = []
        for message in messages:
            place = Place(message.partition(), message.offset())
            value = int(message.value().split(b" ", 1)[0])
            run = run_of([(place.offset, value)])
            self._history.polls.append(Poll(self.name, Mode.SHARE, place.partition, *run, at))
            delivery = Delivery(self.name, place, message.delivery_count(), at, self._verb())
            found.append(delivery)
        self.deliveries += found
        return found

    def _verb(self) -> Verb:
        lot = 1.0 if self.accepts_all else self._chance.random()
        if lot < RELEASED:
            return Verb.RELEASE
        return Verb.REJECT if lot < RELEASED + REJECTED else Verb.ACCEPT

    def _acknowledge(
        self, consumer: ShareConsumer, deliveries: list[Delivery], messages: list[Message]
    ) -> None:
        if self._chance.random() < HELD_TOO_LONG:
            self._stopping.wait(LOCK_S + 1)
        for delivery, message in zip(deliveries, messages, strict=True):
            consumer.acknowledge(message, TYPES[delivery.verb])
            delivery.called = time.monotonic()
            delivery.fate = Fate.UNKNOWN
        try:
            answers = consumer.commit_sync(CALL_S)
        except KafkaException:
            return
        answered = time.monotonic()
        fates = {at.partition: fate_of(error) for at, error in answers.items()}
        for delivery in deliveries:
            delivery.fate = fates.get(delivery.place.partition, Fate.UNKNOWN)
            delivery.answered = answered


def fate_of(error: KafkaException | None) -> Fate:
    """The fate of an acknowledgement by its answer."""
    if error is None:
        return Fate.CONFIRMED
    refused = error.args[0].code() == KafkaError.INVALID_RECORD_STATE
    return Fate.REFUSED if refused else Fate.UNKNOWN


class GroupWorkload(Workload):
    """The workload with a consumer group of three, a share group of three, and two copiers in
    transactions of version 2 if Apache Kafka 4 is installed."""

    groups = (GROUP, CONSUMERS, COPIERS)

    def _start(self, rate: float) -> None:
        servers = self.cluster.bootstrap_servers
        starts = {TopicPartition(self._topic, p): 0 for p in range(self._partitions)}
        with Cluster(servers) as cluster:
            assert not any(alter_share_offsets(cluster, SHARERS, starts).values())
        super()._start(rate)
        self.consumers = [Consumer(self, seed) for seed in range(3)]
        self._copies = History()
        self._copy_reader: list[Reader] = []
        self.copiers = self._copiers() if apache_kafka.installed(java_copier.RELEASE) else []
        self.sharers = [Sharer(servers, self._topic, self.history, seed) for seed in range(3)]

    def _copiers(self) -> list[JavaCopier]:
        """Start the copiers, and a reader of their copies."""
        servers, home = self.cluster.bootstrap_servers, self.cluster.directory
        create_topic(self.cluster, COPIES, self._partitions, 3, 2)
        poller = Poller(servers, COPIES, self._partitions, self._copies, "copies")
        self._copy_reader.append(Reader(poller))
        made = []
        for seed in range(2):
            name = f"copier-{seed}"
            argv = java_copier.command(servers, self._topic, COPIES, COPIERS, name)
            made.append(JavaCopier(argv, name, seed, home / f"{name}.out"))
        return made

    def poller(self, name: str, group: str, mode: Mode) -> Poller:
        """A group member whose polls are recorded."""
        servers = self.cluster.bootstrap_servers
        return Poller(servers, self._topic, self._partitions, self.history, name, group, mode)

    def _parties(self) -> list[Party]:
        others = [*self.consumers, *self.sharers, *self.copiers, *self._copy_reader]
        return [*super()._parties(), *others]

    def _drain(self) -> list[int]:
        for sharer in self.sharers:
            sharer.accepts_all = True
        ends = super()._drain()
        self._wait_until_committed(CONSUMERS, self._topic, ends)
        wait_until(self._left, DRAIN_LIMIT_S, "share group not drained")
        if self.copiers:
            self._wait_until_committed(COPIERS, self._topic, ends)
            for copier in self.copiers:
                copier.stop()
            wait_until(self._not_read, DRAIN_LIMIT_S, "copies not drained")
        return ends

    def _left(self) -> list[str]:
        try:
            with Cluster(self.cluster.bootstrap_servers) as cluster:
                found = share_offsets(cluster, SHARERS)
        except (ApiError, OSError) as error:
            return [str(error)]
        return [f"partition {at.partition}: {row.lag}" for at, row in found.items() if row.lag]

    def _not_read(self) -> list[str]:
        """The number of unread copies: transactions of killed copiers must time out first."""
        total = sum(len(poll.values) for poll in self._of_assigned())
        read = sum(len(poll.values) for poll in self._copies.polls)
        return [f"{total - read} copies"] * (read < total)

    def _of_assigned(self) -> list[Poll]:
        return [poll for poll in self.history.polls if poll.mode is Mode.ASSIGN]

    def _judge(self) -> tuple[Anomalies, Anomalies]:
        anomalies, _ = super()._judge()
        written = {
            Place(send.partition, send.offset)
            for send in self.history.sends
            if send.outcome is Outcome.ACKED and send.offset >= 0
        }
        deliveries = [each for sharer in self.sharers for each in sharer.deliveries]
        found = share_anomalies.judge(deliveries, written, COUNT_LIMIT, LATE_S)
        times = Counter(each.place for each in deliveries)
        allowed = {
            "delivered-once": [str(place) for place, n in times.items() if n == 1],
            "delivered-more-often": [str(place) for place, n in times.items() if n > 1],
            "not-confirmed": [str(each) for each in deliveries if not each.confirmed],
        }
        if self.copiers:
            copies = java_copier.differences(self._of_assigned(), self._copies.polls)
            found["inexact-copy"] = copies
            ends = Counter(status for copier in self.copiers for status in copier.ended)
            killed = sum(copier.killed for copier in self.copiers)
            allowed["copiers-killed"] = ["killed"] * killed
            allowed["copiers-failed"] = [f"status {status}" for status in ends.elements() if status]
        return {**anomalies, **found}, allowed

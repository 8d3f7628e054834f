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
from tests.harness.faults.chaos_workload import QUICK_TO_RECONNECT, ClientThread, Poller, Reader
from tests.harness.faults.fault_cluster import wait_until
from tests.harness.faults.java_copier import JavaCopier
from tests.harness.faults.share_anomalies import Acknowledgement, AckOutcome, Delivery, Place
from tests.harness.processes import apache_kafka

CONSUMER_GROUP = "chaos-consumers"
SHARE_GROUP = "chaos-sharers"
COPIER_GROUP = "chaos-copiers"
COPIES = "chaos-copies"
LOCK_S = 3.0
COUNT_LIMIT = 10
LATE_S = 15.0
CALL_S = 20.0
RELEASE_PROBABILITY, REJECT_PROBABILITY, HOLD_PROBABILITY = 0.1, 0.05, 0.02
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
    Acknowledgement.ACCEPT: AcknowledgeType.ACCEPT,
    Acknowledgement.RELEASE: AcknowledgeType.RELEASE,
    Acknowledgement.REJECT: AcknowledgeType.REJECT,
}


class RejoiningMember(ClientThread):
    """A member of a group that leaves, and rejoins as a new member."""

    def __init__(self, name: str, seed: int) -> None:
        super().__init__(name)
        self._chance = random.Random(seed)
        self.start()

    def run(self) -> None:
        while not self._stopping.is_set():
            self._run_member(time.monotonic() + self._chance.uniform(10, 40))
            self._stopping.wait(self._chance.uniform(0, 5))

    def _run_member(self, end: float) -> None:
        raise NotImplementedError


class Consumer(RejoiningMember):
    """A member of the consumer group."""

    def __init__(self, workload: GroupWorkload, seed: int) -> None:
        self._workload = workload
        super().__init__(f"consumer-{seed}", seed)

    def _run_member(self, end: float) -> None:
        poller = self._workload.poller(
            f"{self.name} until {end:.0f}", CONSUMER_GROUP, Mode.CONSUMER
        )
        while time.monotonic() < end and not self._stopping.is_set():
            poller.poll()
        poller.close()


class ShareGroupMember(RejoiningMember):
    """A member of the share group. It accepts most records, and holds some for longer than their
    lock. Once it `accepts_all` it releases and rejects nothing."""

    def __init__(self, servers: str, topic: str, history: History, seed: int) -> None:
        self.deliveries: list[Delivery] = []
        self.accepts_all = False
        self._servers = servers
        self._topic = topic
        self._history = history
        super().__init__(f"sharer-{seed}", seed)

    def _run_member(self, end: float) -> None:
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": SHARE_GROUP,
                "share.acknowledgement.mode": "explicit",
                **QUICK_TO_RECONNECT,
            }
        )
        consumer.subscribe([self._topic])
        while time.monotonic() < end and not self._stopping.is_set():
            messages = [each for each in consumer.poll(0.2) or () if each.error() is None]
            if messages:
                self._acknowledge(consumer, self._record_deliveries(messages), messages)
        with suppress(KafkaException):  # then its session expires
            consumer.close()

    def _record_deliveries(self, messages: Iterable[Message]) -> list[Delivery]:
        """Record the deliveries, and choose an acknowledgement for each."""
        at = time.monotonic()
        found = []
        for message in messages:
            place = Place(message.partition(), message.offset())
            value = int(message.value().split(b" ", 1)[0])
            run = run_of([(place.offset, value)])
            self._history.polls.append(Poll(self.name, Mode.SHARE, place.partition, *run, at))
            delivery = Delivery(
                self.name, place, message.delivery_count(), at, self._choose_acknowledgement()
            )
            found.append(delivery)
        self.deliveries += found
        return found

    def _choose_acknowledgement(self) -> Acknowledgement:
        lot = 1.0 if self.accepts_all else self._chance.random()
        if lot < RELEASE_PROBABILITY:
            return Acknowledgement.RELEASE
        return (
            Acknowledgement.REJECT
            if lot < RELEASE_PROBABILITY + REJECT_PROBABILITY
            else Acknowledgement.ACCEPT
        )

    def _acknowledge(
        self, consumer: ShareConsumer, deliveries: list[Delivery], messages: list[Message]
    ) -> None:
        if self._chance.random() < HOLD_PROBABILITY:
            self._stopping.wait(LOCK_S + 1)
        for delivery, message in zip(deliveries, messages, strict=True):
            consumer.acknowledge(message, TYPES[delivery.acknowledgement])
            delivery.acknowledged_at = time.monotonic()
            delivery.ack_outcome = AckOutcome.UNKNOWN
        try:
            answers = consumer.commit_sync(CALL_S)
        except KafkaException:
            return
        answered_at = time.monotonic()
        outcomes = {at.partition: ack_outcome_of(error) for at, error in answers.items()}
        for delivery in deliveries:
            delivery.ack_outcome = outcomes.get(delivery.place.partition, AckOutcome.UNKNOWN)
            delivery.answered_at = answered_at


def ack_outcome_of(error: KafkaException | None) -> AckOutcome:
    """The fate of an acknowledgement by its answer."""
    if error is None:
        return AckOutcome.CONFIRMED
    refused = error.args[0].code() == KafkaError.INVALID_RECORD_STATE
    return AckOutcome.REFUSED if refused else AckOutcome.UNKNOWN


class GroupWorkload(Workload):
    """The workload with a consumer group of three, a share group of three, and two copiers in
    transactions of version 2 if Apache Kafka 4 is installed."""

    groups = (GROUP, CONSUMER_GROUP, COPIER_GROUP)

    def _start(self, rate: float) -> None:
        servers = self.cluster.bootstrap_servers
        starts = {TopicPartition(self._topic, p): 0 for p in range(self._partitions)}
        with Cluster(servers) as cluster:
            assert not any(alter_share_offsets(cluster, SHARE_GROUP, starts).values())
        super()._start(rate)
        self.consumers = [Consumer(self, seed) for seed in range(3)]
        self._copies = History()
        self._copy_reader: list[Reader] = []
        self.copiers = self._copiers() if apache_kafka.installed(java_copier.RELEASE) else []
        self.share_members = [
            ShareGroupMember(servers, self._topic, self.history, seed) for seed in range(3)
        ]

    def _copiers(self) -> list[JavaCopier]:
        """Start the copiers, and a reader of their copies."""
        servers, home = self.cluster.bootstrap_servers, self.cluster.directory
        create_topic(self.cluster, COPIES, self._partitions, 3, 2)
        poller = Poller(servers, COPIES, self._partitions, self._copies, "copies")
        self._copy_reader.append(Reader(poller))
        made = []
        for seed in range(2):
            name = f"copier-{seed}"
            argv = java_copier.command(servers, self._topic, COPIES, COPIER_GROUP, name)
            made.append(JavaCopier(argv, name, seed, home / f"{name}.out"))
        return made

    def poller(self, name: str, group: str, mode: Mode) -> Poller:
        """A group member whose polls are recorded."""
        servers = self.cluster.bootstrap_servers
        return Poller(servers, self._topic, self._partitions, self.history, name, group, mode)

    def _client_threads(self) -> list[ClientThread]:
        others = [*self.consumers, *self.share_members, *self.copiers, *self._copy_reader]
        return [*super()._client_threads(), *others]

    def _drain(self) -> list[int]:
        for member in self.share_members:
            member.accepts_all = True
        ends = super()._drain()
        self._wait_until_committed(CONSUMER_GROUP, self._topic, ends)
        wait_until(self._incomplete_partitions, DRAIN_LIMIT_S, "share group not drained")
        if self.copiers:
            self._wait_until_committed(COPIER_GROUP, self._topic, ends)
            for copier in self.copiers:
                copier.stop()
            wait_until(self._unread_copies, DRAIN_LIMIT_S, "copies not drained")
        return ends

    def _incomplete_partitions(self) -> list[str]:
        try:
            with Cluster(self.cluster.bootstrap_servers) as cluster:
                found = share_offsets(cluster, SHARE_GROUP)
        except (ApiError, OSError) as error:
            return [str(error)]
        return [f"partition {at.partition}: {row.lag}" for at, row in found.items() if row.lag]

    def _unread_copies(self) -> list[str]:
        """The number of unread copies: transactions of killed copiers must time out first."""
        total = sum(len(poll.values) for poll in self._assigned_polls())
        read = sum(len(poll.values) for poll in self._copies.polls)
        return [f"{total - read} copies"] * (read < total)

    def _assigned_polls(self) -> list[Poll]:
        return [poll for poll in self.history.polls if poll.mode is Mode.ASSIGN]

    def _judge(self) -> tuple[Anomalies, Anomalies]:
        anomalies, _ = super()._judge()
        written = {
            Place(send.partition, send.offset)
            for send in self.history.sends
            if send.outcome is Outcome.ACKED and send.offset >= 0
        }
        deliveries = [each for member in self.share_members for each in member.deliveries]
        found = share_anomalies.judge(deliveries, written, COUNT_LIMIT, LATE_S)
        times = Counter(each.place for each in deliveries)
        allowed = {
            "delivered-once": [str(place) for place, n in times.items() if n == 1],
            "delivered-more-often": [str(place) for place, n in times.items() if n > 1],
            "not-confirmed": [str(each) for each in deliveries if not each.confirmed],
        }
        if self.copiers:
            copies = java_copier.differences(self._assigned_polls(), self._copies.polls)
            found["inexact-copy"] = copies
            ends = Counter(status for copier in self.copiers for status in copier.exit_statuses)
            killed = sum(copier.kill_count for copier in self.copiers)
            allowed["copiers-killed"] = ["killed"] * killed
            allowed["copiers-failed"] = [f"status {status}" for status in ends.elements() if status]
        return {**anomalies, **found}, allowed

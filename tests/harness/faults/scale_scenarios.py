"""Many replicas on few brokers (replica_scale_test)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.harness.faults.chaos_run import Workload, create_topic
from tests.harness.faults.chaos_workload import QUICK_TO_RECONNECT
from tests.harness.faults.fault_cluster import FaultCluster, wait_until
from tests.harness.faults.scenario import PATIENT, Scenario

LIMIT_S: Final = 600.0
ACTIVE: Final = 3
"""The number of topics that are written and read; the others are idle."""
VALUE: Final = bytes(100)


def replica_scale(topics: int, partitions: int, records: int) -> Scenario:
    """Many topics of RF 3: records are written to and read from some, each broker is bounced, and
    all topics are deleted."""

    def faults(cluster: FaultCluster, _: Workload) -> Iterator[str]:
        names = [f"scale-{number}" for number in range(topics)]
        yield f"{topics} x {partitions} created in {create(cluster, names, partitions):.1f} s"
        seconds = write_and_read(cluster, names[:ACTIVE], partitions, records)
        yield f"{records} records in and out in {seconds:.1f} s"
        for broker_id, broker in cluster.brokers.items():
            start = time.monotonic()
            broker.stop(LIMIT_S)
            cluster.start_supervised(broker, LIMIT_S)
            cluster.wait_for_full_isr(LIMIT_S)
            yield f"broker {broker_id} bounced in {time.monotonic() - start:.1f} s"
        yield f"deleted in {delete(cluster, names):.1f} s"

    return Scenario(faults, overrides=PATIENT)


def create(cluster: FaultCluster, names: list[str], partitions: int) -> float:
    """Create topics one after another. Seconds until all exist, and every ISR is full."""
    start = time.monotonic()
    for name in names:
        create_topic(cluster, name, partitions, 3, 1)
    cluster.wait_for_full_isr(LIMIT_S)
    return time.monotonic() - start


def delete(cluster: FaultCluster, names: list[str]) -> float:
    """Delete topics. Seconds until they are in no assignment."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUICK_TO_RECONNECT})
    start = time.monotonic()
    for done in admin.delete_topics(names, request_timeout=60, operation_timeout=60).values():
        done.result()

    def lacking() -> list[str]:
        left = {tp.topic for tp in cluster.assignment()} & set(names)
        return [f"topic {name}" for name in sorted(left)]

    wait_until(lacking, LIMIT_S, "topics not deleted")
    return time.monotonic() - start


def write_and_read(cluster: FaultCluster, names: list[str], partitions: int, records: int) -> float:
    """Seconds until the records are written and acknowledged, and each was read once."""
    start = time.monotonic()
    homes = [(name, partition) for name in names for partition in range(partitions)]
    sent: Counter[tuple[str, int]] = Counter()
    refused: list[str] = []

    def answered(error: object, _: Message) -> None:
        if error is not None:
            refused.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 50,
            "on_delivery": answered,
            "delivery.report.only.error": True,
            **QUICK_TO_RECONNECT,
        }
    )
    for number in range(records):
        home = homes[number % len(homes)]
        while True:
            try:
                producer.produce(home[0], VALUE, partition=home[1])
                break
            except BufferError:
                producer.poll(0.1)
        sent[home] += 1
    assert producer.flush(LIMIT_S) == 0
    assert refused == [], refused[:5]
    assert read(cluster, homes, records) == sent
    return time.monotonic() - start


def read(
    cluster: FaultCluster, homes: list[tuple[str, int]], records: int
) -> Counter[tuple[str, int]]:
    """Read until there are `records` records, and then the rest. Returns counts by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "scale",
            "enable.auto.commit": False,
            **QUICK_TO_RECONNECT,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in homes])
    found: Counter[tuple[str, int]] = Counter()
    deadline = time.monotonic() + LIMIT_S
    more = True
    while more or found.total() < records:
        assert time.monotonic() < deadline, f"{found.total()} of {records} records"
        batch = consumer.consume(10_000, 1.0)
        more = bool(batch)
        for message in batch:
            assert message.error() is None, message.error()
            topic, partition = message.topic(), message.partition()
            assert topic is not None
            assert partition is not None
            found[topic, partition] += 1
    consumer.close()
    return found

"""Partitions that move while records flow."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Final

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.harness.faults.chaos_run import GROUP, TOPIC, Workload, create_topic
from tests.harness.faults.chaos_workload import QUICK_TO_RECONNECT, committed
from tests.harness.faults.fault_cluster import FaultCluster, wait_until
from tests.harness.faults.scenario import PATIENT, Scenario

MOVED: Final = 20
"""The number of partitions of reassign_partitions_test."""
REASSIGN_LIMIT_S = 60.0
BULK = "bulk"
BULK_PARTITIONS = 3
NOTHING_LEFT_OUT = 0.9
SLOWEST = 2.0


def reassignment(partitions: int, *, bounce: bool, from_zero: bool = True) -> Scenario:
    """reassign_partitions_test: every partition moves by one broker while records flow.

    With `bounce`, every other broker is bounced cleanly meanwhile. Without `from_zero`, the first
    records were deleted before.
    """

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        ids = sorted(cluster.brokers)
        target = {p: [ids[(p + n) % len(ids)] for n in range(1, 4)] for p in range(partitions)}
        if not from_zero:
            yield delete_what_was_read(cluster, workload, partitions)
        cluster.reassign(TOPIC, target)
        for broker_id in ids[::2] if bounce else []:
            cluster.brokers[broker_id].stop()
            cluster.start_supervised(cluster.brokers[broker_id])
        seconds = wait_until(
            lambda: cluster.not_reassigned(TOPIC, target), REASSIGN_LIMIT_S, "not reassigned"
        )
        yield f"{partitions} partitions moved in {seconds:.1f} s, bounce {bounce}"

    return Scenario(faults, brokers=4, partitions=partitions, min_isr=3)


def delete_what_was_read(cluster: FaultCluster, workload: Workload, partitions: int) -> str:
    """DeleteRecords up to the offsets that the group has committed and the reader has passed."""
    starts: dict[int, int] = {}

    def lacking() -> list[str]:
        commits = committed(cluster.bootstrap_servers, GROUP, TOPIC, partitions)
        [assigned] = [r.poller for r in workload.readers if r.name == "assigned"]
        starts.update(enumerate(map(min, commits, assigned.position)))
        return [f"partition {p}" for p, start in starts.items() if start <= 0]

    wait_until(lacking, REASSIGN_LIMIT_S, "nothing read and committed")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUICK_TO_RECONNECT})
    wanted = [TopicPartition(TOPIC, p, start) for p, start in starts.items()]
    for done in admin.delete_records(wanted, request_timeout=30).values():
        done.result()
    return f"records before {min(starts.values())} to {max(starts.values())} deleted"


def throttled(partition_bytes: int, record_bytes: int, rate: int, brokers: int) -> Scenario:
    """throttling_test: each partition takes the replicas of the next, at `rate` bytes a second on
    every broker. The time must be about the bytes divided by the rate."""

    def faults(cluster: FaultCluster, _: Workload) -> Iterator[str]:
        create_topic(cluster, BULK, BULK_PARTITIONS, 2, 1)
        seed(cluster, partition_bytes, record_bytes)
        before = {tp.partition: r for tp, r in cluster.assignment().items() if tp.topic == BULK}
        target = {p: before[(p + 1) % BULK_PARTITIONS] for p in before}
        moves = max(len(set(target[p]) - set(before[p])) for p in before)
        assert moves, f"nothing moves: {before}"
        set_throttle(cluster, rate)
        expected_s = moves * partition_bytes / rate
        start = time.monotonic()
        cluster.reassign(BULK, target)
        wait_until(
            lambda: cluster.not_reassigned(BULK, target),
            SLOWEST * expected_s + REASSIGN_LIMIT_S,
            "not reassigned",
        )
        seconds = time.monotonic() - start
        assert seconds >= NOTHING_LEFT_OUT * expected_s, (
            f"{seconds:.1f} s, but {expected_s:.1f} s by the throttle"
        )
        yield f"{before} to {target} in {seconds:.1f} s, {expected_s:.1f} s by the throttle"

    # The throttle does not split a fetch: fetches are small, compared with the rate per second.
    small = {"replica.fetch.max.bytes": "65536", "replica.fetch.response.max.bytes": "262144"}
    return Scenario(faults, brokers=brokers, rf=2, min_isr=1, overrides={**PATIENT, **small})


def seed(cluster: FaultCluster, partition_bytes: int, record_bytes: int) -> None:
    """Write about `partition_bytes` bytes to each partition of the bulk topic."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            "queue.buffering.max.kbytes": 65536,
            **QUICK_TO_RECONNECT,
        }
    )
    value = bytes(record_bytes)
    for number in range(BULK_PARTITIONS * partition_bytes // record_bytes):
        while True:
            try:
                producer.produce(BULK, value, partition=number % BULK_PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(300) == 0
    cluster.wait_for_full_isr()


def set_throttle(cluster: FaultCluster, rate: int) -> None:
    """Set the configs of kafka-reassign-partitions --throttle: rates on brokers, and replicas."""
    brokers = {
        ConfigResource(ResourceType.BROKER, str(broker_id)): {
            "leader.replication.throttled.rate": str(rate),
            "follower.replication.throttled.rate": str(rate),
        }
        for broker_id in cluster.brokers
    }
    topic = {
        ConfigResource(ResourceType.TOPIC, BULK): {
            "leader.replication.throttled.replicas": "*",
            "follower.replication.throttled.replicas": "*",
        }
    }
    for configs in (brokers, topic):
        alter_configs(cluster, configs)


def alter_configs(
    cluster: FaultCluster, configs: Mapping[ConfigResource, Mapping[str, str]]
) -> None:
    """IncrementalAlterConfigs, each resource by itself."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUICK_TO_RECONNECT})
    for resource, entries in configs.items():
        wanted = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in entries.items()
        ]
        change = ConfigResource(resource.restype, resource.name, incremental_configs=wanted)
        for done in admin.incremental_alter_configs([change], request_timeout=30).values():
            done.result()

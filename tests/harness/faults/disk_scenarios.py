"""A log directory that is lost while records flow (log_dir_failure_test).

Kafka's test removes the permission to write, which has no effect for root. Here the directory
disappears, as when a disk is unmounted: open files can still be written, but none can be created.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.harness.faults.chaos_run import TOPIC, Workload, create_topic
from tests.harness.faults.chaos_workload import QUICK_TO_RECONNECT
from tests.harness.faults.fault_cluster import FaultCluster, wait_until
from tests.harness.faults.scenario import Scenario, leader

LIMIT_S = 60.0
OTHER_TOPIC = "beside"
"""A topic without replicas in the lost directory, which needs only one replica."""


def log_dir_failure(*, of_leader: bool, bounce: bool) -> Scenario:
    """A broker loses its second log directory, and gets it back.

    Other brokers take over the lost replicas, which leave all ISRs. The broker continues with its
    other replicas, also alone. When the directory is back, all replicas are in sync again.
    """

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        broker_id, lost = choose_broker(cluster, of_leader)
        broker, lost_dir = cluster.brokers[broker_id], cluster.log_dirs[broker_id][1]
        create_topic(cluster, OTHER_TOPIC, 2, 3, 1)
        wait_until(
            lambda: ["no topic"] * (len(other_topic_partitions(cluster, broker_id)) == 0),
            LIMIT_S,
            "none",
        )
        away = lost_dir.with_name(f"{lost_dir.name}.away")
        lost_dir.rename(away)
        lost_dir.touch()
        if bounce:
            broker.stop()
            cluster.start_supervised(broker)
        wait_until(lambda: not_taken_over(cluster, broker_id, lost), LIMIT_S, "not taken over")
        assert broker.running
        workload.wait_for_progress(500)
        yield f"broker {broker_id} lost partitions {lost}, bounce {bounce}"
        lead_alone(cluster, broker_id)
        yield f"broker {broker_id} alone serves what it has left"
        broker.stop()
        lost_dir.unlink()
        away.rename(lost_dir)
        cluster.start_supervised(broker)
        cluster.wait_for_full_isr(2 * LIMIT_S)

    # A new segment every 3 s, as in Kafka's test: its creation detects the lost directory.
    return Scenario(faults, log_dirs=2, overrides={"log.roll.ms": "3000"})


def choose_broker(cluster: FaultCluster, of_leader: bool) -> tuple[int, list[int]]:
    """A broker whose second directory has a replica that it leads (or follows), and the
    partitions in that directory."""
    for broker_id in sorted(cluster.brokers):
        lost = partitions_in(cluster.log_dirs[broker_id][1], TOPIC)
        if any((cluster.leader(TOPIC, p) == broker_id) == of_leader for p in lost):
            return broker_id, lost
    raise AssertionError(f"nobody has a suitable replica of {TOPIC}; {leader(cluster)} leads 0")


def partitions_in(log_dir: Path, topic: str) -> list[int]:
    """The partitions of a topic in a log directory."""
    return sorted(int(path.name.rpartition("-")[2]) for path in log_dir.glob(f"{topic}-*[0-9]"))


def other_topic_partitions(cluster: FaultCluster, broker_id: int) -> list[int]:
    return partitions_in(cluster.log_dirs[broker_id][0], OTHER_TOPIC)


def not_taken_over(cluster: FaultCluster, broker_id: int, partitions: list[int]) -> list[str]:
    """Lost partitions that still have the broker in the ISR, or that no other broker leads."""
    states = {p: cluster.state(TOPIC, p) for p in partitions}
    return [
        f"{TOPIC}-{p}: {state}"
        for p, state in states.items()
        if broker_id in state.get("isr", [broker_id]) or state["leader"] in (-1, broker_id)
    ]


def lead_alone(cluster: FaultCluster, broker_id: int) -> None:
    """Kill the other brokers: this one must lead and serve its remaining partitions. Then start
    the others again."""
    others = [broker for i, broker in cluster.brokers.items() if i != broker_id]
    [partition, *_] = other_topic_partitions(cluster, broker_id)
    for broker in others:
        broker.kill()
    wait_until(
        lambda: ["not led"] * (cluster.state(OTHER_TOPIC, partition).get("isr") != [broker_id]),
        LIMIT_S,
        f"broker {broker_id} does not lead {OTHER_TOPIC}-{partition}",
    )
    servers = cluster.brokers[broker_id].bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "acks": "all", **QUICK_TO_RECONNECT})
    producer.produce(OTHER_TOPIC, b"alone", partition=partition)
    assert producer.flush(LIMIT_S) == 0
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": OTHER_TOPIC, **QUICK_TO_RECONNECT}
    )
    consumer.assign([TopicPartition(OTHER_TOPIC, partition, 0)])
    message = consumer.poll(LIMIT_S)
    assert message is not None
    assert message.value() == b"alone", message.error()
    consumer.close()
    for broker in others:
        cluster.start_supervised(broker)

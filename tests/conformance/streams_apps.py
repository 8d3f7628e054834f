"""The programs of Apache Kafka's own system tests of Kafka Streams, on a cluster that loses
brokers while they lose their processes.

They verify themselves: `StreamsSmokeTest` what eleven aggregates of its input must be,
`StreamsEosTest` that every record went through two stages of processing exactly once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.conformance.java_apps import Finding, JavaApp, properties, replicated_cluster
from tests.harness.faults.chaos_run import create_topic
from tests.harness.faults.fault_cluster import FaultCluster
from tests.harness.processes import apache_kafka
from tests.harness.processes.topics import QUIET
from tests.harness.processes.waiting import wait_until

SMOKE = "org.apache.kafka.streams.tests.StreamsSmokeTest"
SMOKE_TOPICS = (
    *("echo", "data", "min", "min-suppressed", "min-raw", "max", "sum", "sws-raw"),
    *("sws-suppressed", "dif", "cnt", "avg", "wcnt", "tagg", "fk"),
)
EOS = "org.apache.kafka.streams.tests.StreamsEosTest"
EOS_TOPICS = ("data", "echo", "min", "sum", "repartition", "max", "cnt")
PARTITIONS = 5
ROUNDS = 3
PROGRESS = 1000
LIMIT_S = 180.0
_VERIFY_LIMIT_S = 400.0


def _create(cluster: FaultCluster, topics: tuple[str, ...]) -> None:
    for topic in topics:
        create_topic(cluster, topic, PARTITIONS, 3, 2)


def _settings(cluster: FaultCluster, directory: Path, name: str, guarantee: str) -> str:
    return properties(
        directory, name, bootstrap_servers=cluster.bootstrap_servers,
        state_dir=str(directory / f"state-{name}"), processing_guarantee=guarantee,
        replication_factor="3",
    )  # fmt: skip


def smoke(
    directory: Path,
    guarantee: str,
    apache: tuple[int, ...] = (),
    release: apache_kafka.Release = apache_kafka.KAFKA_3_APPS,
) -> Finding:
    """The smoke test, two instances, a broker killed and started while it runs."""
    with replicated_cluster(directory / "cluster", apache) as cluster:
        _create(cluster, SMOKE_TOPICS)
        names = ("one", "two")
        instances = [
            JavaApp(directory, name, SMOKE, _settings(cluster, directory, name, guarantee),
                    "process", release=release) for name in names
        ]  # fmt: skip
        driver = JavaApp(
            directory,
            "driver",
            SMOKE,
            _settings(cluster, directory, "driver", guarantee),
            "run",
            release=release,
        )
        try:
            for instance in (*instances, driver):
                instance.launch()
            wait_until(
                lambda: any("processed" in one.output_text() for one in instances),
                "an instance has processed", LIMIT_S,
            )  # fmt: skip
            victim = cluster.brokers[cluster.leader("data", 0)]
            victim.kill()
            cluster.start_supervised(victim)
            status = driver.wait(_VERIFY_LIMIT_S)
        finally:
            _end(*instances, driver)
    text = driver.output_text()
    assert status == 0, f"the driver ended with {status}: {text[-2000:]}"
    assert "SUCCESS" in text, text[-2000:]
    generated = re.findall(r"recordGenerated=(\d+)", text)[-1]
    return Finding(
        f"Kafka Streams {release.version}, `StreamsSmokeTest`, `{guarantee}`",
        _brokers(apache),
        "the leader of the input killed once", f"SUCCESS, {int(generated):,} records",
    )  # fmt: skip


def exactly_once(directory: Path, apache: tuple[int, ...] = ()) -> Finding:
    """The test of exactly once, its complex topology: each round kills a broker and an instance."""
    with replicated_cluster(directory / "cluster", apache) as cluster:
        _create(cluster, EOS_TOPICS)
        guarantee = "exactly_once_v2"
        driven = _settings(cluster, directory, "driver", guarantee)
        driver = JavaApp(directory, "driver", EOS, driven, "run")
        instances = [
            JavaApp(directory, name, EOS, _settings(cluster, directory, name, guarantee),
                    "process-complex") for name in ("one", "two")
        ]  # fmt: skip
        try:
            for each in (driver, *instances):
                each.launch()
            for number in range(ROUNDS):
                victim = cluster.brokers[number + 1]
                instance = instances[number % 2]
                _wait_for_more(cluster)
                victim.kill()
                instance.kill()
                _wait_for_more(cluster)
                cluster.start_supervised(victim)
                instance.launch()
                cluster.wait_for_full_isr()
            _wait_for_more(cluster)
            driver.stop()
            # Those that are down give their places up only after their session, so verify waits.
            for instance in instances:
                instance.stop(LIMIT_S)
            verified = JavaApp(directory, "verify", EOS, driven, "verify-complex")
            text = verified.run(_VERIFY_LIMIT_S)
        finally:
            _end(driver, *instances)
    assert "ALL-RECORDS-DELIVERED" in text, text[-2000:]
    produced = re.findall(r"Producer closed: (\d+) records produced", driver.output_text())[-1]
    return Finding(
        f"Kafka Streams {apache_kafka.VERSION}, `StreamsEosTest`, complex", _brokers(apache),
        f"each broker, and an instance with it, killed in turn ({ROUNDS} rounds)",
        f"ALL-RECORDS-DELIVERED, {int(produced):,} records, each exactly once",
    )  # fmt: skip


def _wait_for_more(cluster: FaultCluster) -> None:
    """Until the last stage has written more than it has now."""
    with _watcher(cluster) as written:
        before = written()
        wait_until(
            lambda: written() >= before + PROGRESS,
            f"{PROGRESS} more records at the last stage", LIMIT_S,
        )  # fmt: skip


@contextmanager
def _watcher(cluster: FaultCluster) -> Iterator[Callable[[], int]]:
    """Progress of the last stage: a function that sums the end offsets of its partitions.

    While a partition's leader is down, its last known end counts.
    """
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "watcher", **QUIET}
    )
    ends = dict.fromkeys(range(PARTITIONS), 0)

    def written() -> int:
        for partition in ends:
            try:
                where = TopicPartition(EOS_TOPICS[-1], partition)
                ends[partition] = consumer.get_watermark_offsets(where, timeout=5)[1]
            except KafkaException:
                continue
        return sum(ends.values())

    try:
        yield written
    finally:
        consumer.close()


def _brokers(apache: tuple[int, ...]) -> str:
    ours = 3 - len(apache)
    return f"{ours} kafkapy, {len(apache)} Apache Kafka" if apache else "3 kafkapy"


def _end(*programs: JavaApp) -> None:
    for program in programs:
        if program.running:
            program.kill()

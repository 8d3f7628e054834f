"""Compacted topics on a real broker: deleted while they are cleaned, and found after a crash that
took a checkpoint."""

from __future__ import annotations

from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient

from tests.conftest import BrokerFactory
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.topics import QUIET, create_topic
from tests.harness.processes.waiting import wait_until

CLEANER = {
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.initial.task.delay.ms": "0",
}
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "200000"}
RECORDS = 60_000
LOST = {"missing": None, "empty": b"", "malformed": b"0\n1\nnonsense"}


def fill(servers: str, topic: str, records: int) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "batch.num.messages": 20, "linger.ms": 1, **QUIET}
    )
    for i in range(records):
        producer.produce(topic, b"v" * 100, key=b"key %d" % (i % (records // 2)))
        producer.poll(0)
    assert producer.flush(60) == 0


def cleaned_to(broker: BrokerProcess, topic: str) -> int:
    """The first dirty offset of partition 0 that the cleaner's checkpoint has."""
    path = broker.log_dir / "cleaner-offset-checkpoint"
    rows = path.read_text().splitlines()[2:] if path.exists() else []
    return next((int(row.split()[2]) for row in rows if row.startswith(f"{topic} 0 ")), 0)


def test_a_topic_is_deleted_in_the_middle_of_its_cleaning(broker_factory: BrokerFactory) -> None:
    broker = broker_factory(CLEANER)
    servers = broker.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    for number in range(3):
        topic = f"deleted-{number}"
        create_topic(servers, topic, config=COMPACTED)
        fill(servers, topic, RECORDS)
        directory = broker.log_dir / f"{topic}-0"
        wait_until(lambda where=directory: bool(list(where.glob("*.cleaned"))), "it is cleaned")
        admin.delete_topics([topic])[topic].result(timeout=30)
        wait_until(lambda where=directory: not where.exists(), "it is gone")
    create_topic(servers, "kept", config=COMPACTED)
    fill(servers, "kept", 6000)
    wait_until(lambda: cleaned_to(broker, "kept") > 0, "the cleaner goes on")
    said = broker.output_text()
    assert "The cleaning for partition deleted-" in said
    assert "offline" not in said
    assert "Traceback" not in said
    assert broker.stop() in (0, 143)


def committed(servers: str, group: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": group, **QUIET})
    [found] = consumer.committed([confluent_kafka.TopicPartition("t", 0)], timeout=60)
    consumer.close()
    return found.offset


def commit(servers: str, group: str, offsets: range) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, **QUIET}
    )
    for offset in offsets:
        at = confluent_kafka.TopicPartition("t", 0, offset)
        consumer.commit(offsets=[at], asynchronous=False)
    consumer.close()


def lose(path: Path, content: bytes | None) -> None:
    path.unlink()
    if content is not None:
        path.write_bytes(content)


def test_committed_offsets_survive_a_crash_that_took_the_recovery_points(
    broker_factory: BrokerFactory,
) -> None:
    """Compaction has left gaps in `__consumer_offsets`, which recovery meets from offset 0 on."""
    settings = {
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.segment.bytes": "3000",
    }
    broker = broker_factory({**CLEANER, **settings})
    servers = broker.bootstrap_servers
    create_topic(servers, "t")
    commit(servers, "once", range(7, 8))
    for number, (_, content) in enumerate(LOST.items()):
        before = cleaned_to(broker, "__consumer_offsets")
        commit(servers, "often", range(100 * number, 100 * number + 100))
        wait_until(lambda was=before: cleaned_to(broker, "__consumer_offsets") > was, "cleaned")
        broker.kill()
        lose(broker.log_dir / "recovery-point-offset-checkpoint", content)
        broker.start()
        assert committed(servers, "once") == 7
        assert committed(servers, "often") == 100 * number + 99
        assert "recovery dropped" not in broker.output_text()

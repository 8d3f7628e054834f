"""DeleteRecords into the middle of a batch: new replicas, readers and tools go on with the log."""

from __future__ import annotations

import json
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient

from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.topics import QUIET
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import kafkapy

TOPIC = "purged"


def isr(servers: str) -> list[int]:
    where = ("--bootstrap-server", servers, "--topic", TOPIC)
    [found] = kafkapy("topics", "--describe", *where, "--output", "json").data
    return sorted(found["partitions"][0]["isr"])


def read_all(servers: str) -> list[int]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True,
         "auto.offset.reset": "earliest", "enable.auto.commit": False, **QUIET}
    )  # fmt: skip
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    found: list[int] = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            break
        found.append(message.offset())
    consumer.close()
    return found


def test_a_new_replica_joins_the_isr_after_records_were_deleted_inside_a_batch(
    tmp_path: Path,
) -> None:
    with BrokerGroup(tmp_path, (1, 2), {"zookeeper.session.timeout.ms": "6000"}) as group:
        servers = group.bootstrap_servers
        made = kafkapy("topics", "--create", "--bootstrap-server", servers, "--topic", TOPIC,
                       "--replica-assignment", "1")  # fmt: skip
        assert made.status == 0, made
        # One batch, which the flush sends.
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": servers, "linger.ms": 60_000, **QUIET}
        )
        for i in range(100):
            producer.produce(TOPIC, b"%d" % i, partition=0)
        assert producer.flush(60) == 0
        admin = AdminClient({"bootstrap.servers": servers, **QUIET})
        at = confluent_kafka.TopicPartition(TOPIC, 0, 37)
        admin.delete_records([at])[at].result(timeout=30)
        plan = tmp_path / "plan.json"
        rows = [{"topic": TOPIC, "partition": 0, "replicas": [1, 2]}]
        plan.write_text(json.dumps({"version": 1, "partitions": rows}))
        told = kafkapy("reassign", "--bootstrap-server", servers, "--execute",
                       "--reassignment-json-file", str(plan))  # fmt: skip
        assert told.status == 0, told
        wait_until(lambda: isr(servers) == [1, 2], "the new replica is in sync")
        assert read_all(servers) == list(range(37, 100))

        logs = [group.brokers[b].log_dir / f"{TOPIC}-0/{0:020d}.log" for b in (1, 2)]
        assert logs[0].read_bytes() == logs[1].read_bytes()
        checked = kafkapy("replica-verification", "--broker-list", servers, "--once",
                          "--topics-include", TOPIC)  # fmt: skip
        assert checked.status == 0, checked
        dumped = kafkapy("dump-log-segments", "--files", str(logs[1]))
        assert dumped.status == 0, dumped

        group.stop(1)
        wait_until(lambda: isr(group.bootstrap_servers) == [2], "broker 2 leads")
        assert read_all(group.bootstrap_servers) == list(range(37, 100))
        group.start(1)
        wait_until(lambda: isr(group.bootstrap_servers) == [1, 2], "both are in sync")

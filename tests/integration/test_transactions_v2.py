"""Transaction version 2 with Apache Kafka 4's producer: a process is stopped in a transaction,
which times out, its successor fences it, the coordinator is killed, some transactions are aborted;
each record is read committed once. Kafka 4 decodes the records of `__transaction_state`.

Without Apache Kafka 4's jars nothing of this is checked, and the end of the run says so.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkapy.client.cluster import Cluster
from kafkapy.client.coordinators import TRANSACTION_KEY_TYPE, find_coordinator
from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.waiting import wait_until

RECORDS = 150
LIMIT_S = 90.0
SETTINGS = {
    "zookeeper.session.timeout.ms": "6000",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"


class Copier:
    """Kafka 4's program that copies a partition in transactions and aborts some by chance. It
    prints a line after each transaction.
    """

    def __init__(self, brokers: BrokerGroup, output: Path) -> None:
        command = apache_kafka.java_command(
            COPIER,
            *("--broker-list", brokers.bootstrap_servers, "--transactional-id", "copier"),
            *("--input-topic", "in", "--input-partition", "0", "--output-topic", "out"),
            *("--consumer-group", "copiers", "--transaction-size", "5", "--enable-random-aborts"),
            *("--transaction-timeout", "15000"),
            release=apache_kafka.KAFKA_4,
        )
        self._output = output
        with output.open("wb") as sink, output.with_suffix(".err").open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=errors
            )

    @property
    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    @property
    def errors(self) -> str:
        return self._output.with_suffix(".err").read_text()

    def has_done(self, transactions: int) -> None:
        def is_so() -> bool:
            assert self.process.poll() is None, self.errors
            return len(self.lines) > transactions

        wait_until(is_so, f"{transactions} transactions", LIMIT_S)

    def end(self) -> int:
        return self.process.wait(LIMIT_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerGroup]:
    with BrokerGroup(tmp_path_factory.mktemp("brokers"), (1, 2, 3), SETTINGS) as group:
        admin = AdminClient({"bootstrap.servers": group.bootstrap_servers})
        for created in admin.create_topics([NewTopic("in", 1, 3), NewTopic("out", 1, 3)]).values():
            created.result(LIMIT_S)
        yield group


def produce(brokers: BrokerGroup, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": brokers.bootstrap_servers, "acks": "all"})
    for number in numbers:
        producer.produce("in", str(number), partition=0)
    assert producer.flush(LIMIT_S) == 0


def committed(brokers: BrokerGroup) -> list[str]:
    """The values of the output, up to the last stable offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers.bootstrap_servers,
            "group.id": "readers",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["out"])
    found: list[str] = []

    def is_done() -> bool:
        for message in consumer.consume(RECORDS, 0.1):
            assert message.error() is None, message.error()
            found.append((message.value() or b"").decode())
        return len(found) >= RECORDS

    wait_until(is_done, f"{RECORDS} committed records", LIMIT_S)
    consumer.close()
    return found


if apache_kafka.installed(apache_kafka.KAFKA_4):

    def test_a_zombie_is_fenced_and_a_coordinator_killed(
        brokers: BrokerGroup, tmp_path: Path
    ) -> None:
        produce(brokers, range(RECORDS))
        with ExitStack() as undo:
            zombie = Copier(brokers, tmp_path / "zombie")
            undo.callback(zombie.kill)
            zombie.has_done(3)
            zombie.process.send_signal(signal.SIGSTOP)
            successor = Copier(brokers, tmp_path / "successor")
            undo.callback(successor.kill)
            successor.has_done(3)
            with Cluster(brokers.bootstrap_servers) as cluster:
                coordinator = find_coordinator(cluster, "copier", TRANSACTION_KEY_TYPE)
            brokers.brokers[coordinator].kill()
            brokers.start(coordinator)
            assert successor.end() == 0, successor.errors
            produce(brokers, range(RECORDS, RECORDS + 5))  # or it may have nothing to write
            zombie.process.send_signal(signal.SIGCONT)
            assert zombie.end() != 0
            # Its client may have waited for the end of a transaction for too long, or may find
            # that it has ended while it wants to abort it.
            fenced = (
                "ProducerFenced|InvalidProducerEpoch|previous call to .* timed out"
                "|from state READY to state ABORTING_TRANSACTION"
            )
            assert re.search(fenced, zombie.errors), zombie.errors
            assert json.loads(successor.lines[-1])["remaining"] == 0
        assert committed(brokers) == [str(number) for number in range(RECORDS)]

    def test_apache_kafka_4_decodes_the_records(brokers: BrokerGroup) -> None:
        log = brokers.brokers[1].log_dir / f"{TRANSACTION_STATE_TOPIC}-0" / f"{0:020}.log"
        dumped = apache_kafka.run_tool(
            "org.apache.kafka.tools.DumpLogSegments",
            *("--transaction-log-decoder", "--files", str(log)),
            release=apache_kafka.KAFKA_4,
        )
        text = dumped.stdout.decode()
        assert dumped.returncode == 0, dumped.stderr.decode()
        values = re.findall(r'payload: (\{"version":"1",.*\})', text)
        found = [json.loads(value)["data"] for value in values]
        ended = [each for each in found if each["transactionStatus"] in (2, 3)]
        assert {each["clientTransactionVersion"] for each in ended} == {2}
        epochs = [each["producerEpoch"] for each in ended]
        assert epochs == sorted(set(epochs)), "each end has the next epoch"
        assert len(epochs) > RECORDS // 5

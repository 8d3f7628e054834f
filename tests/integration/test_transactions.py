"""Transactions with real clients: what is committed is read once, what is not is never read."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from kafkapy.admin import transactions
from kafkapy.client.cluster import Cluster
from tests.conftest import BrokerFactory
from tests.harness.faults.exactly_once import Copier, fill, read
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.kafka_python import closed
from tests.harness.processes.topics import create_topic
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import kafkapy

with warnings.catch_warnings():  # theirs, not ours
    warnings.simplefilter("ignore")
    import aiokafka
    import kafka

CALL_S = 30.0
TOTAL = 600


def producer(servers: str, name: str, **config: Any) -> Producer:
    made = Producer(
        {"bootstrap.servers": servers, "transactional.id": name, "log_level": 0, **config}
    )
    made.init_transactions(CALL_S)
    return made


def write(subject: Producer, topic: str, *values: str) -> None:
    for value in values:
        subject.produce(topic, value)
    assert subject.flush(CALL_S) == 0


def state(servers: str, name: str) -> str:
    with Cluster(servers) as cluster:
        return transactions.describe_transaction(cluster, name).state


def test_what_is_aborted_is_not_read(broker: BrokerProcess) -> None:
    servers = broker.bootstrap_servers
    create_topic(servers, "aborting", 2)
    subject = producer(servers, "aborting")
    for number, commit in enumerate((True, False, True)):
        subject.begin_transaction()
        write(subject, "aborting", f"{number}a", f"{number}b")
        subject.commit_transaction(CALL_S) if commit else subject.abort_transaction(CALL_S)
    wait_until(lambda: state(servers, "aborting") == "CompleteCommit", "it is complete")
    assert sorted(read(servers, "aborting")) == ["0a", "0b", "2a", "2b"]
    assert len(read(servers, "aborting", "read_uncommitted")) == 6


def end(topic: str, committed: list[str], servers: str) -> None:
    """Expect consumers to read all committed records of a topic, and no aborted ones."""
    wait_until(lambda: sorted(read(servers, topic)) == sorted(committed), f"{topic} is read")
    assert len(read(servers, topic, "read_uncommitted")) > len(committed)


def test_aiokafka_commits_and_aborts(broker: BrokerProcess) -> None:
    servers = broker.bootstrap_servers
    create_topic(servers, "aiokafka", 2)

    async def scenario() -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers, transactional_id="aiokafka"
        ) as subject:
            async with subject.transaction():
                for partition in (0, 1):
                    await subject.send_and_wait("aiokafka", b"kept", partition=partition)
            await subject.begin_transaction()
            await subject.send_and_wait("aiokafka", b"left", partition=0)
            await subject.abort_transaction()

    asyncio.run(scenario())
    end("aiokafka", ["kept", "kept"], servers)


def test_kafka_python_commits_and_aborts(broker: BrokerProcess) -> None:
    servers = broker.bootstrap_servers
    create_topic(servers, "kafka-python", 1)
    with closed(
        kafka.KafkaProducer(bootstrap_servers=servers, transactional_id="kafka-python")
    ) as subject:
        subject.init_transactions()
        for value, commit in ((b"kept", True), (b"left", False), (b"kept too", True)):
            subject.begin_transaction()
            subject.send("kafka-python", value)
            subject.flush()
            subject.commit_transaction() if commit else subject.abort_transaction()
    end("kafka-python", ["kept", "kept too"], servers)


if apache_kafka.installed():

    def test_javas_producer_commits_many_short_transactions(broker: BrokerProcess) -> None:
        servers = broker.bootstrap_servers
        create_topic(servers, "java", 3)
        words = ["--topic", "java", "--num-records", "20000", "--record-size", "100"]
        more = ["--throughput", "10000", "--transaction-duration-ms", "50"]
        done = apache_kafka.run_tool(
            "org.apache.kafka.tools.ProducerPerformance",
            *words, *more, "--transactional-id", "java",
            "--producer-props", f"bootstrap.servers={servers}",
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        wait_until(lambda: len(read(servers, "java")) == 20_000, "every record is committed")


def test_an_open_transaction_holds_back_what_follows_it(broker: BrokerProcess) -> None:
    servers = broker.bootstrap_servers
    create_topic(servers, "holding", 1)
    first, second = producer(servers, "holding-1"), producer(servers, "holding-2")
    first.begin_transaction()
    write(first, "holding", "first")
    second.begin_transaction()
    write(second, "holding", "second")
    second.commit_transaction(CALL_S)
    wait_until(lambda: state(servers, "holding-2") == "CompleteCommit", "it is complete")
    assert read(servers, "holding") == []
    first.commit_transaction(CALL_S)
    wait_until(lambda: state(servers, "holding-1") == "CompleteCommit", "it is complete")
    assert read(servers, "holding") == ["first", "second"]


def test_a_new_instance_fences_the_old_one(broker: BrokerProcess) -> None:
    servers = broker.bootstrap_servers
    create_topic(servers, "fencing", 1)
    old = producer(servers, "fencing")
    old.begin_transaction()
    write(old, "fencing", "old")
    new = producer(servers, "fencing")
    new.begin_transaction()
    write(new, "fencing", "new")
    with pytest.raises(KafkaException, match="fenced"):
        old.commit_transaction(CALL_S)
    new.commit_transaction(CALL_S)
    wait_until(lambda: state(servers, "fencing") == "CompleteCommit", "it is complete")
    assert read(servers, "fencing") == ["new"]


def test_an_operator_ends_the_transaction_of_a_lost_producer(broker: BrokerProcess) -> None:
    """It would hold back consumers until its timeout, of a minute or more."""
    servers = broker.bootstrap_servers
    create_topic(servers, "terminated", 1)
    lost, other = producer(servers, "terminated-1"), producer(servers, "terminated-2")
    for subject in (lost, other):
        subject.begin_transaction()
        write(subject, "terminated", "never" if subject is lost else "always")
    other.commit_transaction(CALL_S)
    words = ("transactions", "--bootstrap-server", servers, "forceTerminateTransaction")
    refused = kafkapy(*words, "--transactionalId", "terminated-3")
    assert refused.status == 1
    assert refused.stderr.startswith("Failed to force terminate transactionalId `terminated-3`: ")
    assert kafkapy(*words, "--transactionalId", "terminated-1").status == 0
    assert read(servers, "terminated") == ["always"]
    with pytest.raises(KafkaException, match="fenced"):
        lost.commit_transaction(CALL_S)


def test_a_transaction_that_its_producer_left_is_aborted(broker_factory: BrokerFactory) -> None:
    every = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
    servers = broker_factory(every).bootstrap_servers
    create_topic(servers, "leaving", 1)
    subject = producer(servers, "leaving", **{"transaction.timeout.ms": 1000})
    subject.begin_transaction()
    write(subject, "leaving", "never")
    wait_until(lambda: state(servers, "leaving") == "CompleteAbort", "it is aborted")
    assert read(servers, "leaving") == []


def test_after_a_kill_decided_transactions_count_and_open_ones_go_on(
    broker_factory: BrokerFactory,
) -> None:
    broker = broker_factory()
    servers = broker.bootstrap_servers
    create_topic(servers, "killing", 1)
    subject = producer(servers, "killing")
    subject.begin_transaction()
    write(subject, "killing", "before")
    subject.commit_transaction(CALL_S)
    subject.begin_transaction()
    write(subject, "killing", "open")
    broker.kill()
    broker.start()
    assert read(servers, "killing") == ["before"]
    assert state(servers, "killing") == "Ongoing"
    subject.commit_transaction(CALL_S)
    wait_until(lambda: state(servers, "killing") == "CompleteCommit", "it is complete")
    assert read(servers, "killing") == ["before", "open"]


def test_each_record_is_copied_once(broker: BrokerProcess) -> None:
    servers = broker.bootstrap_servers
    create_topic(servers, "copy-in", 3)
    create_topic(servers, "copy-out", 3)
    fill(servers, "copy-in", TOTAL)
    with Copier(servers, "copy-in", "copy-out", TOTAL) as copier:
        copier.wait_for(TOTAL)
    assert copier.aborted > 0
    assert sorted(map(int, read(servers, "copy-out"))) == list(range(TOTAL))
    assert len(read(servers, "copy-out", "read_uncommitted")) > TOTAL, "some were aborted"

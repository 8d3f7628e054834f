"""A lone broker that serves its embedded store becomes a cluster of three, under load; each broker
is killed in turn."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.harness.processes.broker_process import BrokerProcess, free_port
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import kafkapy

LIMIT_S = 120.0
PARTITIONS = 2


class Load:
    """A producer that goes on until it is stopped; what was acknowledged."""

    def __init__(self, servers: str) -> None:
        self.acknowledged: list[bytes] = []
        self._stop = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1}
        )
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(LIMIT_S)

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            value = b"%d" % number
            self._producer.produce(
                "t", value, partition=number % PARTITIONS, on_delivery=self._delivered
            )
            number += 1
            self._producer.poll(0.005)
        assert self._producer.flush(LIMIT_S) == 0

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            self.acknowledged.append(message.value())  # type: ignore[attr-defined]

    def goes_on(self) -> None:
        """Wait until more was acknowledged."""
        enough = len(self.acknowledged) + 100
        wait_until(lambda: len(self.acknowledged) >= enough, "more acknowledged", LIMIT_S)


def reassign(servers: str, directory: Path) -> None:
    file = directory / "plan.json"
    replicas = ([1, 2, 3], [2, 3, 1])
    rows = [
        {"topic": "t", "partition": partition, "replicas": ids}
        for partition, ids in enumerate(replicas)
    ]
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    words = ("--bootstrap-server", servers, "--reassignment-json-file", str(file))
    done = kafkapy("reassign", "--execute", *words)
    assert done.status == 0, done.stderr
    wait_until(
        lambda: kafkapy("reassign", "--verify", "--strict", *words).status == 0,
        "three replicas",
        LIMIT_S,
    )


def in_sync(servers: str) -> bool:
    """Whether every partition has its three replicas in sync."""
    words = ("--bootstrap-server", servers, "--topic", "t", "--output", "json")
    outcome = kafkapy("topics", "--describe", *words)
    if outcome.status != 0:
        return False
    (found,) = outcome.data
    return all(len(row["isr"]) == 3 for row in found["partitions"])


def consumed(servers: str) -> list[bytes]:
    """Every record of the topic."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "check"})
    values: list[bytes] = []
    for partition in range(PARTITIONS):
        _, end = consumer.get_watermark_offsets(TopicPartition("t", partition), LIMIT_S)
        consumer.assign([TopicPartition("t", partition, 0)])
        at = 0
        while at < end:
            message = consumer.poll(LIMIT_S)
            assert message is not None, f"nothing after offset {at} of {end}"
            assert message.error() is None
            values.append(message.value())
            at = message.offset() + 1
    consumer.close()
    return values


def test_one_broker_becomes_three_and_each_dies_once(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    serving = {"broker.id": "1", "kafkapy.zookeeper.listen": address}
    joining = {"zookeeper.connect": address, "zookeeper.session.timeout.ms": "2000"}
    brokers = [BrokerProcess(tmp_path / "1", serving)]
    brokers += [BrokerProcess(tmp_path / i, {**joining, "broker.id": i}) for i in ("2", "3")]
    first = brokers[0]
    servers = ",".join(broker.bootstrap_servers for broker in brokers)
    with ExitStack() as stack:
        for broker in brokers:
            stack.callback(lambda broker=broker: broker.running and broker.kill())
        first.start()
        words = ("--bootstrap-server", first.bootstrap_servers, "--topic", "t")
        made = kafkapy("topics", *words, "--create", "--partitions", str(PARTITIONS))
        assert made.status == 0, made.stderr
        with Load(servers) as load:
            load.goes_on()
            pid = first.pid
            for broker in brokers[1:]:
                broker.start()
            reassign(servers, tmp_path)
            assert first.pid == pid
            assert first.running
            config = ("--alter", "--add-config", "min.insync.replicas=2")
            assert kafkapy("configs", *words, *config).status == 0
            load.goes_on()
            for broker in (*brokers[1:], first):
                wait_until(lambda: in_sync(servers), "three in sync", LIMIT_S)
                broker.kill()
                if broker is not first:
                    load.goes_on()
                broker.start()
                load.goes_on()
            wait_until(lambda: in_sync(servers), "three in sync", LIMIT_S)
        values = consumed(servers)
        for broker in reversed(brokers):
            assert broker.stop() == 0
    assert len(load.acknowledged) > 500
    assert set(load.acknowledged) <= set(values), "acknowledged records are lost"
    assert len(values) == len(set(values)), "a record is there twice"

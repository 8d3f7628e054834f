"""A broker that is told to stop while ZooKeeper does not answer stops cleanly, and soon."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from kafkapy.storage.log_names import CLEAN_SHUTDOWN_FILE
from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.broker_process import BrokerProcess, free_port
from tests.harness.processes.topics import create_topic
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.zookeeper_server import ZooKeeperServer

# Far above what it takes, far below controlled.shutdown's own patience (a minute and more).
STOP_LIMIT_S = 25.0
TOPIC = "kept"

Lose = Callable[[ZooKeeperServer], None]
LOSSES: dict[str, Lose] = {"stopped": ZooKeeperServer.pause, "killed": ZooKeeperServer.kill}


@pytest.fixture
def group(tmp_path: Path) -> Iterator[BrokerGroup]:
    # A session that outlives the stop: nobody notices the loss by its expiry.
    settings = {"zookeeper.session.timeout.ms": "12000", "replica.lag.time.max.ms": "1000"}
    with BrokerGroup(tmp_path, (1, 2), settings) as running:
        create_topic(running.bootstrap_servers, TOPIC, 2, replication_factor=2)
        producer = Producer({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
        for number in range(100):
            producer.produce(TOPIC, value=str(number))
        assert producer.flush(60) == 0
        yield running


def controller_of(zookeeper: ZooKeeperServer) -> int:
    client = KazooClient(zookeeper.connect())
    client.start()
    try:
        found = client.get("/controller")[0].decode()
    finally:
        client.stop()
        client.close()
    return 1 if '"brokerid":1' in found else 2


def is_closed_cleanly(broker: BrokerProcess) -> bool:
    return (broker.log_dir / CLEAN_SHUTDOWN_FILE).exists() and "Traceback" not in (
        broker.output_text()
    )


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize("role", ["controller", "other"])
@pytest.mark.parametrize("company", ["both live", "the other is killed"])
def test_it_closes_its_logs_and_says_what_it_skipped(
    role: str, company: str, lose: Lose, group: BrokerGroup
) -> None:
    controller = controller_of(group.zookeeper)
    stopping = controller if role == "controller" else 3 - controller
    broker, other = group.brokers[stopping], group.brokers[3 - stopping]
    lose(group.zookeeper)
    if company == "the other is killed":
        other.kill()
    assert broker.stop(STOP_LIMIT_S) == 0
    assert is_closed_cleanly(broker)
    said = broker.output_text()
    assert said.count("Stopping without controlled shutdown") == 1
    assert "shut down completed" in said


def test_all_brokers_stop_and_are_a_cluster_again(group: BrokerGroup) -> None:
    group.zookeeper.kill()
    group.stop(1, 2)
    assert all(is_closed_cleanly(broker) for broker in group.brokers.values())
    group.zookeeper.start()
    group.start(1, 2)
    wait_until(
        lambda: (
            {line.split("Isr: ")[1] for line in group.describe(TOPIC).splitlines()}
            <= {"1,2", "2,1"}
        ),
        "both are in sync again",
    )


def test_a_second_signal_changes_nothing(group: BrokerGroup) -> None:
    group.zookeeper.pause()
    broker = group.brokers[1]
    os.kill(broker.pid, signal.SIGTERM)
    wait_until(lambda: "shutting down" in broker.output_text(), "it stops")
    os.kill(broker.pid, signal.SIGINT)
    os.kill(broker.pid, signal.SIGTERM)
    assert broker.wait(STOP_LIMIT_S) == 0
    assert is_closed_cleanly(broker)


def test_who_waits_for_zookeeper_to_start_can_be_stopped(tmp_path: Path) -> None:
    nobody = {"zookeeper.connect": f"127.0.0.1:{free_port()}", "broker.id": "1"}
    patient = {"zookeeper.connection.timeout.ms": "600000"}
    broker = BrokerProcess(tmp_path / "logs", nobody | patient)
    broker.launch()
    pid_file = broker.log_dir / "kafkapy.pid"
    wait_until(pid_file.exists, "it has its log directory")
    assert broker.stop(STOP_LIMIT_S) == 1
    assert not pid_file.exists()
    assert "was told to stop before it had started" in broker.output_text()
    assert "Traceback" not in broker.output_text()

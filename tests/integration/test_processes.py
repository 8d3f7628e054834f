"""`kafkapy server start --processes`: the brokers of a machine under one supervisor."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from kafkapy.common.java_properties import format_properties
from kafkapy.tools.supervisor.merged_metrics import fetch_text
from tests.harness.processes.broker_process import QUICK_SETTINGS, free_port
from tests.harness.processes.kafkapy_process import Kafkapy
from tests.harness.processes.topics import create_topic
from tests.harness.processes.waiting import wait_until

KAFKAPY = [sys.executable, "-P", "-m", "kafkapy.cli.main"]
LIMIT_S = 120
SERVES = re.compile(r"^Broker (\d+): serves at (\S+) \(pid (\d+)\)$", re.M)


class Machine:
    """Two brokers of one property file, and their supervisor."""

    def __init__(self, directory: Path) -> None:
        self.metrics_port = free_port()
        self.file = directory / "server.properties"
        self.log_dir = directory / "logs"
        properties = {
            **QUICK_SETTINGS,
            "broker.id": "1",
            # A port of its own, for clients to find the brokers again; the second's is 10 higher.
            "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
            "log.dirs": str(self.log_dir),
            "zookeeper.session.timeout.ms": "4000",
            "kafkapy.metrics.port": str(self.metrics_port),
            "default.replication.factor": "2",
        }
        self.file.write_text(format_properties(properties))
        self.output = directory / "supervisor.out"
        with self.output.open("wb") as sink:
            command = [*KAFKAPY, "server", "start", str(self.file), "--processes", "2"]
            self.process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)
        wait_until(lambda: "] started (kafkapy " in self.said(), "both serve", LIMIT_S)

    def said(self) -> str:
        return self.output.read_text()

    def lives(self) -> list[tuple[str, str, int]]:
        """(broker, address, pid) of each start."""
        return [(one, address, int(pid)) for one, address, pid in SERVES.findall(self.said())]

    def serving(self) -> dict[str, tuple[str, int]]:
        """The address and the pid of each broker now."""
        return {one: (address, pid) for one, address, pid in self.lives()}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(address for address, _ in self.serving().values())


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    directory = tmp_path_factory.mktemp("machine")
    machine = Machine(directory)
    try:
        create_topic(machine.bootstrap_servers, "t", 4, replication_factor=2)
        yield machine
    finally:
        machine.process.terminate()
        machine.process.wait(LIMIT_S)


def test_the_brokers_share_topics_and_one_address_has_the_metrics_of_both(
    machine: Machine,
) -> None:
    described = Kafkapy(machine.bootstrap_servers)("topics", "--describe", "--topic", "t").stdout
    replicas = set(re.findall(r"Replicas: (\S+)", described))
    assert replicas == {"1,101", "101,1"}
    families = text_string_to_metric_families(fetch_text(machine.metrics_port))
    counts = {
        sample.labels["process"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == "kafka_server_replicamanager_partitioncount"
    }
    assert counts.keys() == {"0", "1"}
    assert all(count >= 4 for count in counts.values())


def test_a_broker_that_is_killed_is_started_again(machine: Machine) -> None:
    _, pid = machine.serving()["1"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: machine.serving()["1"][1] != pid, "another process serves", LIMIT_S)
    assert "Broker 1: ended with status -9; starts again in 1 s" in machine.said()
    assert (machine.log_dir.with_name("logs-1") / "t-0").is_dir()


def test_a_rolling_restart_loses_no_record(machine: Machine) -> None:
    before = {pid for _, _, pid in machine.lives()}
    acknowledged: list[int] = []
    producer = Producer(
        {"bootstrap.servers": machine.bootstrap_servers, "acks": "all", "log_level": 0}
    )
    machine.process.send_signal(signal.SIGHUP)
    sent = 0

    def both_are_new() -> bool:
        nonlocal sent
        producer.produce(
            "t", b"%d" % sent, on_delivery=lambda error, _: acknowledged.append(error is None)
        )
        sent += 1
        producer.poll(0.01)
        return all(pid not in before for _, pid in machine.serving().values())

    wait_until(both_are_new, "both brokers are new", LIMIT_S)
    assert producer.flush(LIMIT_S) == 0
    assert acknowledged == [True] * sent
    restarted = machine.said().partition("Restarting 2 brokers")[2]
    assert [one for one, _, _ in SERVES.findall(restarted)] == ["0", "1"]


def test_a_second_supervisor_of_the_same_directories_is_refused(machine: Machine) -> None:
    again = subprocess.run(
        [*KAFKAPY, "server", "start", str(machine.file), "--processes", "2"],
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert again.returncode == 1
    assert re.search(r"Another supervisor holds \S+kafkapy-supervisor\.pid", again.stderr)
    assert machine.process.poll() is None


def test_server_stop_ends_all_one_after_the_other(machine: Machine) -> None:
    """The last test of the machine."""
    pids = [pid for _, pid in machine.serving().values()]
    stopped = subprocess.run(
        [*KAFKAPY, "server", "stop", str(machine.file)],
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert machine.process.wait(LIMIT_S) == 0
    assert re.findall(r"Broker (\d): stopped", machine.said()) == ["1", "0"], "the last first"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_if_one_broker_does_not_start_none_is_left(tmp_path: Path) -> None:
    (tmp_path / "logs-1").write_text("in the way")
    settings = [
        "broker.id=1",
        "listeners=PLAINTEXT://127.0.0.1:0",
        f"log.dirs={tmp_path}/logs",
    ]
    failed = subprocess.run(
        [*KAFKAPY, "server", "start", "--processes", "2",
         *(f"--override={word}" for word in settings)],
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert failed.returncode == 1
    assert f"{tmp_path}/logs-1" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_systemd_is_told_when_a_broker_serves_and_when_it_stops(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(LIMIT_S)
        broker = subprocess.Popen(
            [*KAFKAPY, "server", "start", "--override=listeners=PLAINTEXT://127.0.0.1:0",
             f"--override=log.dirs={tmp_path}/logs"],
            env=os.environ | {"NOTIFY_SOCKET": address},
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            assert manager.recv(100) == b"READY=1"
            assert broker.poll() is None
        finally:
            broker.terminate()
        assert manager.recv(100) == b"STOPPING=1"
        assert broker.wait(LIMIT_S) == 0

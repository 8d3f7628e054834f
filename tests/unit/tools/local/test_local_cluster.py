"""A local cluster signals its own processes and no others, and a start that fails leaves none."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.local import broker_processes
from kafkapy.tools.local.cluster_layout import ClusterLayout, load
from kafkapy.tools.local.local_cluster import LocalCluster
from kafkapy.tools.zookeeper import process as zookeeper_process
from tests.harness.processes.broker_process import free_port
from tests.harness.processes.idle_servers import IdleServers


@pytest.fixture
def servers() -> Iterator[IdleServers]:
    with IdleServers() as made:
        yield made


class Stage:
    """A cluster of one broker, its pid files, and what it says. Nothing listens on its ports."""

    def __init__(self, directory: Path) -> None:
        self.said: list[str] = []
        self.layout = ClusterLayout(directory, 0, 1, {1: 2})
        self.cluster = LocalCluster(self.layout, self.said.append)
        self.file = str(self.layout.properties_file(1))
        self.zookeeper_dir = Path(self.layout.zookeeper_config()["dataDir"])
        self.layout.log_dir(1).mkdir(parents=True)
        self.zookeeper_dir.mkdir()

        self.broker_file = self.layout.log_dir(1) / broker_processes.PID_FILE
        self.zookeeper_file = self.zookeeper_dir / zookeeper_process.PID_FILE


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_broker_of_this_cluster_is_killed(stage: Stage, servers: IdleServers) -> None:
    child = servers.start(stage.broker_file)
    assert [member.pid for member in stage.cluster.status()] == [child.pid]
    stage.cluster.kill(1)
    assert child.wait() == -signal.SIGKILL
    assert stage.said == [f"Broker 1: killed (pid {child.pid})"]


def test_a_pid_that_went_to_another_process_is_nobody_of_ours(
    stage: Stage, servers: IdleServers
) -> None:
    """Not even to one that was started with the words of ours."""
    child = servers.start(
        stage.broker_file.with_name("x"), "kafkapy", "server", "start", stage.file
    )
    stage.broker_file.write_text(f"{child.pid}\n")
    assert [member.pid for member in stage.cluster.status()] == [None]
    with pytest.raises(ConfigError, match="Broker 1 does not run"):
        stage.cluster.kill(1)
    stage.cluster.stop()
    assert child.poll() is None
    assert stage.said == ["Nothing of this cluster runs"]


def test_stop_ends_brokers_before_zookeeper(stage: Stage, servers: IdleServers) -> None:
    broker = servers.start(stage.broker_file)
    zookeeper = servers.start(stage.zookeeper_file)
    stage.cluster.stop()
    assert (broker.wait(), zookeeper.wait()) == (-signal.SIGTERM, -signal.SIGTERM)
    assert stage.said == [
        f"Broker 1: stopped (pid {broker.pid})",
        f"ZooKeeper: stopped (pid {zookeeper.pid})",
    ]


def test_a_process_that_will_not_stop_is_named(
    stage: Stage, servers: IdleServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = servers.start(stage.broker_file)
    monkeypatch.setattr(broker_processes, "stop", lambda *_: False)
    with pytest.raises(ConfigError, match=rf"Broker 1: still running after .*{child.pid}"):
        stage.cluster.stop()


@pytest.mark.parametrize("who", ["Broker 1", "ZooKeeper"])
def test_a_taken_port_is_told_before_anything_is_started(tmp_path: Path, who: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        ports = {"Broker 1": free_port(), "ZooKeeper": free_port(), who: taken}
        layout = ClusterLayout(tmp_path / "c", 0, ports["ZooKeeper"], {1: ports["Broker 1"]})
        said = f"{who} cannot listen on 127.0.0.1:{taken}: .* by process {os.getpid()}"
        with pytest.raises(ConfigError, match=said):
            LocalCluster(layout).start()
    assert not layout.directory.exists()


def test_a_second_start_of_a_new_cluster_is_refused(tmp_path: Path) -> None:
    """Each start chose ports, and wrote the files of the other."""
    first, second = (ClusterLayout(tmp_path, 0, free_port(), {1: free_port()}) for _ in range(2))
    fd = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with pytest.raises(ConfigError, match=f"Another command starts the cluster in {tmp_path}"):
        LocalCluster(second).start()
    os.close(fd)
    assert load(tmp_path) is None
    first.save()
    with pytest.raises(ConfigError, match="Another command has created a cluster"):
        LocalCluster(second).start()
    assert load(tmp_path) == first


def test_without_pyspark_no_cluster_on_apaches_zookeeper_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zookeeper_process, "find_spec", lambda name: None)
    ports = (free_port(), {1: free_port()})
    layout = ClusterLayout(tmp_path / "c", 0, *ports, zookeeper="apache")
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        LocalCluster(layout).start()
    assert not layout.directory.exists()


def test_a_start_that_fails_ends_what_it_started(tmp_path: Path) -> None:
    wrong = {"num.io.threads": "x"}
    layout = ClusterLayout(tmp_path / "c", 0, free_port(), {1: free_port()}, wrong)
    said: list[str] = []
    cluster = LocalCluster(layout, said.append)
    with pytest.raises(ConfigError, match=r"Broker 1: The broker ended with status 1"):
        cluster.start()
    assert [line.split(" at ")[0] for line in said] == ["ZooKeeper: started"]
    assert cluster.zookeeper_pid() is None
    assert not zookeeper_process.serves("127.0.0.1", layout.zookeeper_port)


def test_a_wrong_override_does_not_fail_the_starts_without_it(tmp_path: Path) -> None:
    """It was kept, and there is no option that removes an override."""
    layout = ClusterLayout(
        tmp_path / "c", 0, free_port(), {1: free_port()}, {"num.partitions": "7"}
    )
    layout.save()
    with pytest.raises(ConfigError, match=r"Broker 1: The broker ended with status 1"):
        LocalCluster(layout.with_changes(None, None, {"num.io.threads": "x"})).start()
    assert load(layout.directory) == layout


@pytest.mark.parametrize("verb", ["kill", "restart"])
def test_brokers_that_are_not_there(stage: Stage, verb: str) -> None:
    with pytest.raises(ConfigError, match="There is no broker 2; the brokers are 1"):
        getattr(stage.cluster, verb)(2)

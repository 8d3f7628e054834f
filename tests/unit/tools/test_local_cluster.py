"""A local cluster signals its own processes and no others; brokers are played by idle children."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools import broker_processes, zookeeper_process
from kafkapy.tools.cluster_layout import ClusterLayout
from kafkapy.tools.local_cluster import LocalCluster

Play = Callable[..., "subprocess.Popen[bytes]"]
IDLE = "import signal; print(flush=True); signal.pause()"


@pytest.fixture
def play() -> Iterator[Play]:
    """Start an idle child with these words on its command line."""
    children: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen([sys.executable, "-c", IDLE, *words], stdout=subprocess.PIPE)
        children.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        return child

    yield start
    for child in children:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


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

    def broker_has(self, pid: int) -> None:
        (self.layout.log_dir(1) / broker_processes.PID_FILE).write_text(f"{pid}\n")

    def zookeeper_has(self, pid: int) -> None:
        (self.zookeeper_dir / zookeeper_process.PID_FILE).write_text(f"{pid}\n")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def zookeeper_words(directory: Path) -> list[str]:
    """What a ZooKeeper's command line has, on some data directory."""
    words = zookeeper_process.prepare({"dataDir": str(directory), "clientPort": "1"})
    return [words[words.index("-Dkafkapy.zookeeper=true")], zookeeper_process.MAIN_CLASS, words[-1]]


def test_a_broker_of_this_cluster_is_killed(stage: Stage, play: Play) -> None:
    child = play("kafkapy", "server", "start", stage.file)
    stage.broker_has(child.pid)
    assert [member.pid for member in stage.cluster.status()] == [child.pid]
    stage.cluster.kill(1)
    assert child.wait() == -signal.SIGKILL
    assert stage.said == [f"Broker 1: killed (pid {child.pid})"]


@pytest.mark.parametrize(
    "words",
    [
        ("kafkapy", "server", "start", "/other/server.properties"),
        ("kafkapy", "server", "start"),
        ("vi", "server.properties"),
    ],
)
def test_a_pid_that_went_to_another_process_is_nobody_of_ours(
    stage: Stage, play: Play, words: tuple[str, ...]
) -> None:
    child = play(*words)
    stage.broker_has(child.pid)
    assert [member.pid for member in stage.cluster.status()] == [None]
    with pytest.raises(ConfigError, match="Broker 1 does not run"):
        stage.cluster.kill(1)
    stage.cluster.stop()
    assert child.poll() is None
    assert stage.said == ["Nothing of this cluster runs"]


def test_stop_ends_brokers_before_zookeeper(stage: Stage, play: Play, tmp_path: Path) -> None:
    broker = play("kafkapy", "server", "start", stage.file)
    zookeeper = play(*zookeeper_words(stage.zookeeper_dir))
    stage.broker_has(broker.pid)
    stage.zookeeper_has(zookeeper.pid)
    stage.cluster.stop()
    assert (broker.wait(), zookeeper.wait()) == (-signal.SIGTERM, -signal.SIGTERM)
    assert stage.said == [
        f"Broker 1: stopped (pid {broker.pid})",
        f"ZooKeeper: stopped (pid {zookeeper.pid})",
    ]


def test_the_zookeeper_of_another_cluster_is_left_alone(
    stage: Stage, play: Play, tmp_path: Path
) -> None:
    other = play(*zookeeper_words(tmp_path / "other"))
    stage.zookeeper_has(other.pid)
    assert stage.cluster.zookeeper_pid() is None
    stage.cluster.stop()
    assert other.poll() is None


def test_a_process_that_will_not_stop_is_named(
    stage: Stage, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = play("kafkapy", "server", "start", stage.file)
    stage.broker_has(child.pid)
    monkeypatch.setattr(broker_processes, "stop", lambda *_: False)
    with pytest.raises(ConfigError, match=rf"Broker 1: still running after .*{child.pid}"):
        stage.cluster.stop()


@pytest.mark.parametrize("verb", ["kill", "restart"])
def test_brokers_that_are_not_there(stage: Stage, verb: str) -> None:
    with pytest.raises(ConfigError, match="There is no broker 2; the brokers are 1"):
        getattr(stage.cluster, verb)(2)

"""`kafkapy cluster` in one life: made, hurt, mended, stopped, and begun again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.processes.kafkapy_process import Kafkapy

EXECUTABLE = str(Path(sys.executable).parent / "kafkapy")


class LocalCluster:
    """The command on one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, *words: str) -> list[str]:
        """Its lines."""
        done = subprocess.run(
            [EXECUTABLE, "cluster", *words, "--dir", str(self.directory)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout.splitlines()

    def state(self) -> Any:
        [line] = self("status", "--output", "json")
        return json.loads(line)["data"][0]

    def pids(self) -> list[int | None]:
        return [broker["pid"] for broker in self.state()["brokers"]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    made = LocalCluster(tmp_path / "cluster")
    yield made
    made("stop")


def test_a_life(cluster: LocalCluster) -> None:
    started = cluster(
        "start", "--brokers", "2", "--base-port", "0", "--override", "num.partitions=4"
    )
    assert [line.split(" at ")[0] for line in started[:3]] == [
        "ZooKeeper: started",
        "Broker 1: started",
        "Broker 2: started",
    ]
    servers = cluster.state()["bootstrap_servers"]
    assert started[3] == f"The cluster is ready; bootstrap servers: {servers}"
    assert Kafkapy(servers)("topics", "--create", "--topic", "t").returncode == 0
    brokers = cluster.state()["brokers"]
    assert sorted(broker["leaders"] for broker in brokers) == [2, 2]
    assert sorted(broker["is_controller"] for broker in brokers) == [False, True]

    [killed] = cluster("kill", "2")
    assert killed == f"Broker 2: killed (pid {brokers[1]['pid']})"
    assert cluster.pids() == [brokers[0]["pid"], None]
    assert cluster("restart", "2")[-1].startswith("Broker 2: started at ")
    before = cluster.pids()
    assert None not in before

    first, *_ = cluster("restart", "1")
    assert first == f"Broker 1: stopped (pid {before[0]})"
    stopped = cluster("stop")
    assert [line.split(" (")[0] for line in stopped[-1:]] == ["ZooKeeper: stopped"]
    assert sorted(line.split(" (")[0] for line in stopped[:-1]) == [
        "Broker 1: stopped",
        "Broker 2: stopped",
    ]
    assert cluster.pids() == [None, None]

    cluster("start")
    assert cluster.state()["bootstrap_servers"] == servers
    described = Kafkapy(servers)("topics", "--describe", "--topic", "t").stdout
    assert "PartitionCount: 4\tReplicationFactor: 2" in described

    logs = cluster.directory / "broker-1" / "logs"
    texts: defaultdict[str, str] = defaultdict(str)
    for path in logs.iterdir():  # hourly rotation adds the hour to the name
        texts[path.name.partition(".")[0]] += path.read_text()
    kafkas = {"kafka-authorizer", "kafka-request", "log-cleaner"}
    assert texts.keys() == {"controller", "server", "state-change", *kafkas}
    assert "Handling LeaderAndIsr request" in texts["state-change"]
    assert "(state.change.logger)" not in texts["server"]
    assert "[KafkaServer id=1] started" in texts["server"]

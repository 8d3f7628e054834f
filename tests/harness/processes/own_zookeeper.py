"""kafkapy's own ZooKeeper as a child process, with the interface of `ZooKeeperServer`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from kafkapy.common.java_properties import format_properties
from tests.harness.processes.broker_process import ServerProcess, free_port
from tests.harness.processes.zookeeper_server import TICK_MS, ZooKeeperServer


class OwnZooKeeper(ZooKeeperServer):
    """`kafkapy zookeeper start` on `directory`; its output is `<directory>.out`."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        port = free_port()
        chosen = {
            "dataDir": str(directory),
            "clientPort": str(port),
            "tickTime": str(TICK_MS),
            "minSessionTimeout": "1000",
            "maxSessionTimeout": "60000",
            **(settings or {}),
        }
        directory.parent.mkdir(parents=True, exist_ok=True)
        file = Path(f"{directory}.properties")
        file.write_text(format_properties(chosen))
        words = ["zookeeper", "start", str(file), "--implementation", "kafkapy"]
        command = [sys.executable, "-P", "-m", "kafkapy.cli.main", *words]
        output = Path(f"{directory}.out")
        ServerProcess.__init__(self, command, port, output, "kafkapy's ZooKeeper")

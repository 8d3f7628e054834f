"""A real ZooKeeper as a child process: on a free loopback port, gone with the test."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from kafkapy.tools.zookeeper_process import effective_config, prepare, serves
from tests.support.broker_process import ServerProcess, free_port

TICK_MS = 100
"""Session timeouts from 2 to 20 ticks are granted, unless the configuration says otherwise."""


class ZooKeeperServer(ServerProcess):
    """Apache ZooKeeper from pyspark's jars on `directory`; its output is `<directory>.out`.

    It grants short sessions (1 s and more), so that tests of expiry need not wait long.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        port = free_port()
        chosen = {
            "dataDir": str(directory),
            "clientPort": str(port),
            "clientPortAddress": "127.0.0.1",
            "tickTime": str(TICK_MS),
            "minSessionTimeout": "1000",
            "maxSessionTimeout": "60000",
        }
        command = prepare(effective_config(chosen, settings or {}))
        super().__init__(command, port, Path(f"{directory}.out"), "Apache ZooKeeper")

    def answers(self) -> bool:
        """Whether it takes sessions."""
        return serves("127.0.0.1", self.port)

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def connect(self, chroot: str = "") -> str:
        """A `zookeeper.connect` for this server."""
        return f"{self.bootstrap_servers}{chroot}"

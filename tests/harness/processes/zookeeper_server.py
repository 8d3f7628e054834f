"""A real ZooKeeper as a child process, on a free loopback port; it ends with the test."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kafkapy.tools.zookeeper.implementations import Implementation
from kafkapy.tools.zookeeper.process import class_path, effective_config, prepare, serves
from tests.harness.plugins import leaks
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import ServerProcess, free_port
from tests.harness.processes.forked_brokers import ForkedBroker

TICK_MS = 100
"""Session timeouts from 2 to 20 ticks are granted, unless the configuration says otherwise."""


def class_archive() -> Path:
    """The path of the archive of the classes of pyspark's ZooKeeper; see `class_archives`."""
    return apache_kafka.archive_of("zookeeper", Path(class_path().partition(":")[0]).parent)


class ZooKeeperServer(ServerProcess):
    """Apache ZooKeeper from pyspark's jars on `directory`; its output is `<directory>.out`.

    It grants short sessions (1 s and more), so that tests of expiry need not wait long.
    """

    chroot = ""

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
        command = prepare(effective_config(chosen, settings or {}, Implementation.APACHE))
        command[1:1] = apache_kafka.sharing(class_archive())
        super().__init__(command, port, Path(f"{directory}.out"), "Apache ZooKeeper")

    def answers(self) -> bool:
        """Whether it accepts sessions."""
        return serves("127.0.0.1", self.port)

    def connect(self, chroot: str = "") -> str:
        """A `zookeeper.connect` for this server."""
        return f"{self.bootstrap_servers}{chroot}"

    def release(self) -> None:
        """Kill the server: no test needs it any more."""
        if self.running:
            self.kill()


class Chroot(ZooKeeperServer):
    """A separate tree on a shared server. The server is started if it does not run, and is not
    stopped."""

    def __init__(self, server: ZooKeeperServer, path: str) -> None:
        self._server = server
        self.chroot = path
        self.command, self.name = server.command, server.name
        self.environment = server.environment
        self.port, self.output = server.port, server.output
        self.bootstrap_servers = server.connect(path)

    @property
    def _process(self) -> subprocess.Popen[bytes] | ForkedBroker | None:
        return self._server._process

    @_process.setter
    def _process(self, process: subprocess.Popen[bytes] | ForkedBroker | None) -> None:
        self._server._process = process

    def start(self) -> ZooKeeperServer:
        """Start the server unless it is running."""
        return self if self.running else super().start()

    def release(self) -> None:
        """Keep the server running for the next cluster."""
        if self.running:
            self.resume()


_shared: ZooKeeperServer | None = None
_numbers = itertools.count(1)


def zookeeper_for(directory: Path) -> ZooKeeperServer:
    """A ZooKeeper for a cluster below `directory`; if one is shared, a tree on it."""
    directory.mkdir(parents=True, exist_ok=True)
    if _shared is None:
        return ZooKeeperServer(directory / "zookeeper")
    return Chroot(_shared, f"/{directory.name}-{next(_numbers)}")


@contextmanager
def sharing(directory: Path) -> Iterator[None]:
    """Meanwhile the clusters of this process share one server, which the first of them starts.

    They run one after the other, so each cluster may pause and kill the server.
    """
    global _shared
    server = _shared = ZooKeeperServer(directory)
    leaks.add_session_filter(
        lambda said: server.running and said.startswith(f"child process {server.pid}:")
    )
    yield
    _shared = None
    server.release()

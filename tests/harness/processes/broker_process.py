"""A broker as its own process: `kafkapy server start` on a free loopback port."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.harness.processes.forked_brokers import ForkedBroker, can_fork
from tests.harness.processes.waiting import wait_until

START_LIMIT_S = 60.0
STOP_LIMIT_S = 60.0
POLL_S = 0.02
FIRST_PORT = 10_000

# size, api key 18 (ApiVersions), version 0, correlation id 7, null client id
API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 7, -1)

QUICK_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


def free_port() -> int:
    """A free loopback port, for a server whose configs need one.

    No process gets a port twice, and the ports are outside the range that the kernel uses for
    outgoing connections. So until the server listens, and while it is down, only another server
    with a chosen port can take the port.
    """
    for port in _PORTS:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is left")


def _ports() -> Iterator[int]:
    """All ports that may be used, in an order of this process's own. The workers of a run share no
    ports: a server of one worker may be down when another worker checks its port."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    limits = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    lowest, highest = map(int, limits)
    ports = list(range(FIRST_PORT, lowest)) or list(range(lowest, highest))
    ports = ports[worker::workers]
    random.Random(os.urandom(8)).shuffle(ports)
    return iter(ports)


_PORTS = _ports()


def answers_api_versions(host: str, port: int) -> bool:
    """Whether a broker there answers ApiVersions with error code 0."""
    try:
        with socket.create_connection((host, port), timeout=5) as connection:
            connection.sendall(API_VERSIONS_V0)
            with connection.makefile("rb") as stream:
                head = stream.read(10)
    except OSError:
        return False
    return len(head) == 10 and struct.unpack(">ih", head[4:]) == (7, 0)


class ServerProcess:
    """A server child process: started, awaited, killed or stopped by its own pid.

    `output` is the file that collects stdout and stderr of all its starts. `environment` has
    variables besides those of this process.
    """

    def __init__(self, command: Sequence[str], port: int, output: Path, name: str) -> None:
        self.command = list(command)
        self.port = port
        self.output = output
        self.name = name
        self.environment: Mapping[str, str] = {}
        self.bootstrap_servers = f"127.0.0.1:{port}"
        self._process: subprocess.Popen[bytes] | ForkedBroker | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Start the process; do not wait until it answers."""
        assert not self.running, f"{self.name} runs already with pid {self.pid}"
        if not self.environment and can_fork(self.command):
            self._process = ForkedBroker(self.command, self.output)
            return
        with self.output.open("ab") as sink:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
            )

    def answers(self) -> bool:
        """Whether the port serves: here, answers ApiVersions."""
        return answers_api_versions("127.0.0.1", self.port)

    def wait_until_ready(self, limit_s: float = START_LIMIT_S) -> None:
        """Return when the server answers.

        Raises RuntimeError with the end of the output if the process ends or the limit passes.
        """
        assert self._process is not None
        deadline = time.monotonic() + limit_s
        while not self.answers():
            try:
                status = self._process.wait(POLL_S)
            except subprocess.TimeoutExpired:
                if time.monotonic() < deadline:
                    continue
                self.kill()
                raise RuntimeError(self._complaint(f"not ready within {limit_s} s")) from None
            raise RuntimeError(self._complaint(f"ended with status {status} while starting"))

    def start(self) -> Self:
        self.launch()
        self.wait_until_ready()
        return self

    def wait(self, limit_s: float = STOP_LIMIT_S) -> int:
        """Wait for the process to end by itself. Returns its exit status."""
        assert self._process is not None
        return self._process.wait(limit_s)

    def pause(self) -> None:
        """SIGSTOP, and wait until each thread has stopped: connections stay, without answers."""
        os.kill(self.pid, signal.SIGSTOP)
        wait_until(lambda: set(self._states()) == {"T"}, f"{self.name} has stopped")

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def _states(self) -> Iterator[str]:
        """The states of its threads (Linux)."""
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            with suppress(OSError):  # it ended meanwhile
                yield (thread / "stat").read_text().rpartition(") ")[2][0]

    def kill(self) -> None:
        """SIGKILL, as a power cut: nothing is flushed by the process."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self, limit_s: float = STOP_LIMIT_S) -> int:
        """SIGTERM and wait; returns the exit status. After the limit, the process is killed."""
        assert self._process is not None
        if self.running:
            os.kill(self.pid, signal.SIGTERM)
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(self._complaint(f"not stopped within {limit_s} s")) from None

    def restart(self) -> None:
        """Start again (after a clean stop if it still runs) on the same port and directory."""
        if self.running:
            self.stop()
        self.start()

    def output_text(self) -> str:
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def resident_bytes(self) -> int:
        """Resident set size now (Linux)."""
        return self._memory()[1]

    def virtual_bytes(self) -> int:
        """Address space now (Linux): memory asked for, touched or not."""
        return self._memory()[0]

    def _memory(self) -> list[int]:
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()
        return [int(count) * os.sysconf("SC_PAGE_SIZE") for count in pages[:2]]

    def _complaint(self, what: str) -> str:
        tail = "\n".join(self.output_text().splitlines()[-40:])
        return f"{self.name} {what}; its output ends:\n{tail}"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.running:
            self.stop()


class BrokerProcess(ServerProcess):
    """A kafkapy broker on `log_dir`; its output is `<log_dir>.out`, beside the directory.

    `overrides` win over the quick test settings; "log.dirs" and "listeners" may be given too.
    """

    def __init__(self, log_dir: Path, overrides: Mapping[str, str] | None = None) -> None:
        port = free_port()
        self.log_dir = log_dir
        self.properties = {
            "log.dirs": str(log_dir),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            **QUICK_SETTINGS,
            **(overrides or {}),
        }
        executable = Path(sys.executable).parent / "kafkapy"
        command = [str(executable), "server", "start"]
        for key, value in self.properties.items():
            command += ["--override", f"{key}={value}"]
        super().__init__(command, port, Path(f"{log_dir}.out"), "kafkapy broker")

"""The systems of `scripts/bench --cores`: kafkapy with 1 to N processes, Apache Kafka 3.9 and 4
with one broker.

Each system has a plain and a TLS listener. Brokers and clients use different cores where there are
enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from dev.bench.kafka_systems import START_LIMIT_S, Guard, Servers, System
from kafkapy.client.cluster import Cluster
from kafkapy.tools.supervisor.process_properties import ID_STEP, PORT_STEP
from tests.harness.processes import apache_kafka

OWN_CORES_MIN = 4
"""With fewer cores, brokers and clients share them."""


class Cores(NamedTuple):
    """The cores of the brokers, and of the clients."""

    brokers: frozenset[int]
    clients: frozenset[int]


def cores_for(processes: int, available: Sequence[int]) -> Cores:
    """Half of the cores each; all cores for both if these are few or brokers need over a half."""
    half = len(available) // 2
    if len(available) < OWN_CORES_MIN or processes > half:
        return Cores(frozenset(available), frozenset(available))
    return Cores(frozenset(available[:half]), frozenset(available[half:]))


def siblings(cpu: int) -> list[int]:
    """The hardware threads of the core to which `cpu` belongs."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        parts = [part.partition("-") for part in path.read_text().strip().split(",")]
    except OSError:  # not every machine has the file
        return [cpu]
    return [each for first, _, last in parts for each in range(int(first), int(last or first) + 1)]


def by_thread(
    available: Sequence[int], siblings: Callable[[int], list[int]] = siblings
) -> list[int]:
    """The first thread of each core, then the second threads.

    Two brokers on the two threads of one core would have less than two cores.
    """
    return sorted(available, key=lambda cpu: (siblings(cpu).index(cpu), cpu))


def process_counts(available: int) -> list[int]:
    """1, 2, 4 and so on, and the number of cores."""
    counts = [1]
    while counts[-1] * 2 < available:
        counts.append(counts[-1] * 2)
    return [*counts, available] if available > 1 else counts


@contextmanager
def on_cores(cores: frozenset[int]) -> Iterator[None]:
    """Restrict this process to `cores` meanwhile; processes that it starts inherit that."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class OneMachine(Servers):
    """One system on this machine: `processes` brokers of one property file."""

    def __init__(
        self, name: str, system: System, directory: Path, cores: Cores, processes: int = 1
    ) -> None:
        self.name = name
        self.cores = cores
        self.processes = processes
        self.one_half = cores_for(1, by_thread(sorted(os.sched_getaffinity(0)))).clients
        settings = {"log.segment.delete.delay.ms": "1000"}  # or deleted topics fill the disk
        if system is not System.KAFKAPY:  # its default is 3: an operator would raise it
            settings["num.network.threads"] = str(max(3, len(cores.brokers)))
        super().__init__(system, directory, 1, settings, Guard(tls=True))
        self.authority = self.client_properties["ssl.truststore.location"]

    def _command(self, file: Path) -> list[str]:
        command = super()._command(file)
        if self.system is System.KAFKAPY:
            command += ["--processes", str(self.processes)]
        return command

    def start(self) -> None:
        with on_cores(self.cores.brokers):
            super().start()

    @property
    def pids(self) -> list[int]:
        """Pids of all broker processes; for kafkapy, of the supervisor as well."""
        found = super().pids
        if self.system is System.KAFKAPY:
            for pid in list(found):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
                found += map(int, children.split())
        return found

    def end(self) -> None:
        [broker] = self.brokers
        if broker.running:
            broker.stop()  # the supervisor ends its brokers
        super().end()

    def wait_until_known(self) -> None:
        with Cluster(self.bootstrap_servers) as cluster:
            for _ in cluster.attempts():
                seen = cluster.metadata([], refresh=True)
                if len(seen.brokers) == self.processes and seen.controller_id >= 0:
                    break

    def addresses(self, index: int) -> tuple[str, str]:
        """The plain and the TLS address of broker `index`."""
        shift = PORT_STEP * index
        [plain], [tls] = [broker.port for broker in self.brokers], self._guarded_ports
        return f"127.0.0.1:{plain + shift}", f"localhost:{tls + shift}"

    def create_topics(self, names: Sequence[str]) -> None:
        """Create topics of one partition each, led by the brokers in turn."""
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 2})
        wanted = [
            NewTopic(name, 1, replica_assignment=[[ID_STEP * (index % self.processes)]])
            for index, name in enumerate(names)
        ]
        for made in client.create_topics(wanted, operation_timeout=START_LIMIT_S).values():
            made.result(timeout=START_LIMIT_S)


def all_systems(directory: Path, missing: dict[str, str]) -> list[OneMachine]:
    """The systems available on this machine; adds the reason for each missing one to `missing`."""
    available = by_thread(sorted(os.sched_getaffinity(0)))
    found = []
    for count in process_counts(len(available)):
        name = "kafkapy, 1 process" if count == 1 else f"{count} processes"
        cores = cores_for(count, available)
        path = _made(directory / f"kafkapy-{count}")
        found.append(OneMachine(name, System.KAFKAPY, path, cores, count))
    for release, system in (
        (apache_kafka.KAFKA_3, System.APACHE),
        (apache_kafka.KAFKA_4, System.APACHE_4),
    ):
        name = f"Apache Kafka {release.version}"
        try:
            apache_kafka.jars(release)
        except apache_kafka.Unavailable as why:
            missing[name] = str(why)
            continue
        path = _made(directory / release.directory)
        found.append(OneMachine(name, system, path, cores_for(1, available)))
    return found


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory

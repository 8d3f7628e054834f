"""Runs ZooKeeper and some brokers as processes on this machine, for trials and tests.

A process gets signals only if it keeps a pid file in this cluster's directory locked.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kafkapy.client.cluster import Cluster
from kafkapy.client.metadata import ClusterMetadata
from kafkapy.common.errors import ApiError, ConfigError
from kafkapy.tools.local import background, broker_processes
from kafkapy.tools.local.background import LaunchedServer
from kafkapy.tools.local.cluster_layout import (
    FILE,
    HOST,
    ClusterLayout,
    load,
    server_properties,
)
from kafkapy.tools.local.ports import check_port
from kafkapy.tools.local.private_files import write_config_privately
from kafkapy.tools.zookeeper import process as zookeeper_process
from kafkapy.tools.zookeeper.implementations import Implementation

START_LIMIT_S: Final = 60.0
STOP_LIMIT_S: Final = 60.0
_REQUEST_TIMEOUTS: Final = {"default.api.timeout.ms": "2000", "request.timeout.ms": "2000"}
_RETRY_CONFIG: Final = {"retry.backoff.ms": "50"}

PrintLine = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Member:
    """A broker in `status`; None means unknown."""

    broker_id: int
    address: str
    pid: int | None
    is_controller: bool | None = None
    leaders: int | None = None


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Make the directory, and refuse a second command that starts a cluster there.

    Raises:
        ConfigError: another command has locked the directory, or it cannot be made or locked.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        fd = os.open(directory, os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"Cannot write {directory / FILE}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(f"Another command starts the cluster in {directory}") from error
        except OSError as error:
            raise ConfigError(f"Cannot lock {directory}: {error.strerror}") from error
        yield
    finally:
        os.close(fd)


class LocalCluster:
    """A cluster with a fixed layout. `print_line` is called with a line after each step."""

    def __init__(self, layout: ClusterLayout, print_line: PrintLine = lambda line: None) -> None:
        self.layout = layout
        self._print_line = print_line
        self._zookeeper = Implementation(layout.zookeeper)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(map(self.layout.address, self.layout.broker_ids))

    def zookeeper_pid(self) -> int | None:
        """The pid of this cluster's ZooKeeper, if it runs."""
        return zookeeper_process.server_of(self.layout.zookeeper_config()["dataDir"])

    def broker_pid(self, broker_id: int) -> int | None:
        """The pid of a broker of this cluster, if it runs."""
        return broker_processes.broker_of([str(self.layout.log_dir(broker_id))])

    def start(self) -> None:
        """Start the servers that do not run. Returns when all brokers are in every broker's
        metadata.

        Raises:
            ConfigError: a port is in use, another command starts the cluster, or a process did not
              start. Then the servers that this call started are stopped, and new overrides are not
              kept.
        """
        self._check(self.layout.broker_ids)
        with _locked(self.layout.directory):
            self._start()

    def _start(self) -> None:
        previous = load(self.layout.directory)
        if previous and not previous.broker_ports.items() <= self.layout.broker_ports.items():
            raise ConfigError(
                f"Another command has created a cluster in {self.layout.directory}: start it again"
            )
        self.layout.save()
        try:
            with background.end_on_failure() as started:
                self._start_zookeeper(started)
                self._start_brokers(self.layout.broker_ids, started)
                self._wait_until_metadata_complete()
        except BaseException:
            # No option removes an override, so a wrong one would fail all later starts.
            replace(self.layout, overrides=previous.overrides if previous else {}).save()
            raise
        self._print_line(f"The cluster is ready; bootstrap servers: {self.bootstrap_servers}")

    def stop(self) -> None:
        """Stop the brokers by controlled shutdown, the controller last, then ZooKeeper.

        Raises:
            ConfigError: a process still runs after the limit.
        """
        members = [member for member in self.status() if member.pid is not None]
        for member in sorted(members, key=lambda m: (bool(m.is_controller), -m.broker_id)):
            self._stop_broker(member.broker_id)
        pid = self.zookeeper_pid()
        if pid is not None:
            self._stop_process(pid, "ZooKeeper")
        elif not members:
            self._print_line("Nothing of this cluster runs")

    def kill(self, broker_id: int) -> None:
        """Kill a broker with SIGKILL.

        Raises:
            ConfigError: the broker does not exist, or does not run.
        """
        pid = self.broker_pid(self._check_exists(broker_id))
        if pid is None:
            raise ConfigError(f"Broker {broker_id} does not run")
        broker_processes.stop(pid, STOP_LIMIT_S, signal.SIGKILL)
        self._print_line(f"Broker {broker_id}: killed (pid {pid})")

    def restart(self, broker_id: int) -> None:
        """Stop a broker if it runs, start it, and wait until it is in every broker's metadata.

        Raises:
            ConfigError: the broker does not exist, or did not start.
        """
        if self.broker_pid(self._check_exists(broker_id)) is not None:
            self._stop_broker(broker_id)
        self._check([broker_id])
        with background.end_on_failure() as started:
            if self.zookeeper_pid() is None:
                self._start_zookeeper(started)
            self._start_brokers([broker_id], started)
            self._wait_until_metadata_complete()

    def status(self) -> list[Member]:
        """The state of every broker. The metadata are those of the first broker that responds."""
        pids = {broker_id: self.broker_pid(broker_id) for broker_id in self.layout.broker_ids}
        metadata = next(
            (found for b, pid in pids.items() if pid is not None and (found := self._metadata(b))),
            None,
        )
        leaders = [
            partition.leader
            for topic in (metadata.topics.values() if metadata else ())
            for partition in topic.partitions.values()
        ]
        return [
            Member(broker_id, self.layout.address(broker_id), pid)
            if metadata is None or pid is None
            else Member(
                broker_id,
                self.layout.address(broker_id),
                pid,
                metadata.controller_id == broker_id,
                leaders.count(broker_id),
            )
            for broker_id, pid in pids.items()
        ]

    def _check(self, broker_ids: Iterable[int]) -> None:
        """
        Raises:
            ConfigError: another process uses a port of the cluster, or ZooKeeper cannot be started.
        """
        for broker_id in broker_ids:
            if self.broker_pid(broker_id) is None:
                check_port(HOST, self.layout.broker_ports[broker_id], f"Broker {broker_id}")
        if self.zookeeper_pid() is None:
            zookeeper_process.check(self._zookeeper_config(), self._zookeeper)

    def _start_zookeeper(self, started: list[LaunchedServer]) -> None:
        running = self.zookeeper_pid()
        address = f"{HOST}:{self.layout.zookeeper_port}"
        if running is not None:
            self._print_line(f"ZooKeeper: runs already at {address} (pid {running})")
            return
        config = self._zookeeper_config()
        launched = zookeeper_process.launch(config, self._zookeeper)
        started.append(launched)
        zookeeper_process.wait_until_serving(launched, config, START_LIMIT_S)
        self._print_line(f"ZooKeeper: started at {address} (pid {launched.process.pid})")

    def _zookeeper_config(self) -> dict[str, str]:
        config = self.layout.zookeeper_config()
        return zookeeper_process.effective_config(config, {}, self._zookeeper)

    def _start_brokers(self, broker_ids: Iterable[int], started: list[LaunchedServer]) -> None:
        """Start all brokers in parallel, because most of the start time is Python's own."""
        launched: dict[int, LaunchedServer] = {}
        for broker_id in broker_ids:
            running = self.broker_pid(broker_id)
            if running is not None:
                address = self.layout.address(broker_id)
                self._print_line(f"Broker {broker_id}: runs already at {address} (pid {running})")
            else:
                launched[broker_id] = self._launch(broker_id)
                started.append(launched[broker_id])
        for broker_id, server in launched.items():
            try:
                broker_processes.wait_until_serving(server, START_LIMIT_S)
            except ConfigError as fault:
                raise ConfigError(f"Broker {broker_id}: {fault}") from fault
            address, pid = self.layout.address(broker_id), server.process.pid
            self._print_line(f"Broker {broker_id}: started at {address} (pid {pid})")

    def _launch(self, broker_id: int) -> LaunchedServer:
        file = self.layout.properties_file(broker_id)
        write_config_privately(file, server_properties(self.layout.broker_properties(broker_id)))
        output = file.with_name(broker_processes.OUTPUT_FILE)
        return broker_processes.launch([str(file)], output)

    def _stop_broker(self, broker_id: int) -> None:
        pid = self.broker_pid(broker_id)
        if pid is not None:
            self._stop_process(pid, f"Broker {broker_id}")

    def _stop_process(self, pid: int, server_name: str) -> None:
        if not broker_processes.stop(pid, STOP_LIMIT_S):
            raise ConfigError(
                f"{server_name}: still running after {STOP_LIMIT_S:.0f} s (pid {pid})"
            )
        self._print_line(f"{server_name}: stopped (pid {pid})")

    def _check_exists(self, broker_id: int) -> int:
        if broker_id not in self.layout.broker_ports:
            ids = ", ".join(map(str, self.layout.broker_ids))
            raise ConfigError(f"There is no broker {broker_id}; the brokers are {ids}")
        return broker_id

    def _wait_until_metadata_complete(self) -> None:
        """Wait until every broker's metadata have all brokers and the controller, so that a topic
        can be created on all of them.
        """
        running = {b for b in self.layout.broker_ids if self.broker_pid(b) is not None}
        incomplete = set(running)
        with Cluster(self.bootstrap_servers, _RETRY_CONFIG) as retries:
            for _ in retries.attempts():
                found = {broker_id: self._metadata(broker_id) for broker_id in incomplete}
                incomplete = {
                    broker_id
                    for broker_id, metadata in found.items()
                    if metadata is None
                    or not running <= metadata.brokers.keys()
                    or metadata.controller_id not in running
                }
                if not incomplete:
                    return
        ids = ", ".join(map(str, sorted(incomplete)))
        raise ConfigError(f"Brokers {ids} run, but their metadata do not have the whole cluster")

    def _metadata(self, broker_id: int) -> ClusterMetadata | None:
        try:
            with Cluster(self.layout.address(broker_id), _REQUEST_TIMEOUTS) as cluster:
                return cluster.metadata(refresh=True)
        except ApiError:
            return None

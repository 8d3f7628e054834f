"""The supervisor of a machine's brokers.

It starts all brokers together and restarts brokers that died. On SIGHUP it restarts all brokers,
one after the other. On SIGTERM or SIGINT it stops them, one after the other.

The states of a broker, and the next ones:

    STARTING    launched, does not serve yet              -> SERVING, or DEAD
    SERVING     serves                                    -> STOPPING, or DEAD
    STOPPING    was sent SIGTERM                          -> ENDED; STARTING in a rolling restart
    DEAD        died; is launched again when it is due    -> STARTING, or GIVEN_UP
    GIVEN_UP    died too often; is not launched again
    ENDED       stopped with the supervisor
"""

from __future__ import annotations

import contextlib
import enum
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from kafkapy import __version__
from kafkapy.client.properties import int_property
from kafkapy.common import service_manager
from kafkapy.common.config_def import between
from kafkapy.common.errors import ConfigError
from kafkapy.tools.local import broker_processes, pid_files
from kafkapy.tools.local.background import LaunchedServer, end_on_failure
from kafkapy.tools.local.ports import free_port
from kafkapy.tools.local.private_files import check_owner
from kafkapy.tools.local.service_files import STOP_LIMIT_S
from kafkapy.tools.supervisor import process_properties
from kafkapy.tools.supervisor.merged_metrics import MergedMetricsServer, fetch_text, total
from kafkapy.tools.supervisor.restart_policy import RestartPolicy

_HOST: Final = "127.0.0.1"
_POLL_S: Final = 0.1
_CHECK_INTERVAL_S: Final = 1.0
_ROLLING_RESTART_LIMIT_S: Final = 600.0
_METRICS_PORT: Final = "kafkapy.metrics.port"
_is_port: Final = between(-1, 65535)[0]
_UNDER_REPLICATED: Final = "kafka_server_replicamanager_underreplicatedpartitions"


class State(enum.Enum):
    """The states of a broker."""

    STARTING = enum.auto()
    SERVING = enum.auto()
    STOPPING = enum.auto()
    DEAD = enum.auto()
    GIVEN_UP = enum.auto()
    ENDED = enum.auto()


_LIVE: Final = (State.STARTING, State.SERVING, State.STOPPING)


@dataclass(slots=True)
class Child:
    """One broker."""

    number: int
    words: Sequence[str]
    output: Path
    metrics_port: int
    launched: LaunchedServer
    started_s: float
    state: State = State.STARTING
    restart_due_s: float = 0.0
    policy: RestartPolicy = field(default_factory=RestartPolicy)


class Supervisor:
    """The supervisor of one machine. It calls `log` with one line for each event."""

    def __init__(
        self,
        processes: int,
        words: Sequence[str],
        properties: Mapping[str, str],
        log: Callable[[str], None],
    ) -> None:
        """`words` are arguments of `kafkapy server start`: the property file and overrides.

        Raises:
            ConfigError: the properties do not allow `processes` brokers, or a value is not a number
                or not a port; or every user could change the store of secured brokers.
        """
        process_properties.check(properties, processes)
        process_properties.check_store(properties)
        _check_mounts(properties, processes)
        self._metrics_port = int_property(properties, _METRICS_PORT, -1)
        _is_port(_METRICS_PORT, self._metrics_port)
        self._processes = processes
        self._words = words
        self._properties = properties
        self._log = log
        # Not an Event: `Event.set` would deadlock if the signal interrupts code with its lock.
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._is_stopping = False
        self._restart_is_requested = False
        self._to_restart: deque[Child] = deque()
        self._restart_deadline_s = 0.0
        self._checked_s = 0.0  # time of the last check for under-replicated partitions
        self._children: list[Child] = []

    def start(self) -> None:
        """Launch all brokers. Returns when all serve. If one fails to start, all are ended.

        Raises:
            ConfigError: a broker did not start, or a supervisor runs on these directories, or a
                file in them cannot be written.
        """
        directory = Path(broker_processes.log_dirs(self._properties)[0])
        _make_directory(directory)
        pid_file = directory / broker_processes.SUPERVISOR_PID_FILE
        try:
            lock_fd = pid_files.lock(pid_file)  # until the process ends
        except OSError as error:
            raise ConfigError(f"Cannot write {pid_file}: {error.strerror}") from error
        if lock_fd is None:
            raise ConfigError(f"Another supervisor holds {pid_file}")
        machine = socket.gethostname()
        store = self._properties.get(process_properties.LISTEN) or f"{_HOST}:{free_port(_HOST)}"
        with end_on_failure() as started:
            for number in range(self._processes):
                child = self._child(number, machine, store)
                started.append(child.launched)
                self._children.append(child)
            for child in self._children:
                broker_processes.wait_until_serving(child.launched, None)
                self._mark_serving(child)
        processes = "1 process" if self._processes == 1 else f"{self._processes} processes"
        self._log(f"[supervisor] started (kafkapy {__version__}, {processes})")

    def _child(self, number: int, machine: str, store: str) -> Child:
        overrides = process_properties.overrides(self._properties, number, machine, store)
        overrides["kafkapy.metrics.host"] = _HOST
        words = [*self._words, *(f"--override={key}={overrides[key]}" for key in overrides)]
        directory = Path(process_properties.log_dirs(self._properties, number)[0])
        _make_directory(directory)
        output = directory / broker_processes.OUTPUT_FILE
        try:
            metrics_port, launched = _launch_broker(words, output)
        except OSError as error:
            raise ConfigError(
                f"Cannot start broker {number} with its output in {output}: {error.strerror}"
            ) from error
        return Child(number, words, output, metrics_port, launched, time.monotonic())

    def run(self) -> int:
        """Run until SIGTERM or SIGINT, or until all brokers are GIVEN_UP. Returns the exit status.

        Sends READY to the service manager once signals are handled."""
        handlers = {signal.SIGTERM: self.stop, signal.SIGINT: self.stop}
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as by nohup
            handlers[signal.SIGHUP] = self.restart
        with _handle_signals(handlers), self._serve_metrics():
            service_manager.notify(service_manager.READY)
            return self._watch()

    def stop(self) -> None:
        """Stop all brokers, one after the other, beginning with the last."""
        self._is_stopping = True
        service_manager.notify(service_manager.STOPPING)
        self._wake.put(None)

    def restart(self) -> None:
        """Restart all brokers, one after the other."""
        self._restart_is_requested = True
        self._wake.put(None)

    @contextmanager
    def _serve_metrics(self) -> Iterator[None]:
        port = self._metrics_port
        if port < 0:
            yield
            return
        host = self._properties.get("kafkapy.metrics.host") or _HOST
        try:
            server = MergedMetricsServer(host, port, self._metrics_ports)
        except OSError as error:
            self._log(f"No metrics are served at {host}:{port}: {error.strerror}")
            yield
            return
        try:
            yield
        finally:
            server.close()

    def _mark_serving(self, child: Child) -> None:
        child.state = State.SERVING
        address = broker_processes.bound_addresses(child.launched)[0]
        self._log(f"Broker {child.number}: serves at {address} (pid {child.launched.process.pid})")

    def _watch(self) -> int:
        while any(child.state is not State.GIVEN_UP for child in self._children):
            with contextlib.suppress(Empty):
                self._wake.get(timeout=_POLL_S)
            for child in self._children:
                self._update(child)
            if self._is_stopping:
                if not self._stop_next():
                    break
            else:
                self._rolling_restart_step()
        return 1 if any(child.state is State.GIVEN_UP for child in self._children) else 0

    def _update(self, child: Child) -> None:
        """Update the state of a broker; launch it if its restart is due."""
        now_s = time.monotonic()
        if child.state is State.DEAD and not self._is_stopping and now_s >= child.restart_due_s:
            self._relaunch(child)
        if child.state not in _LIVE:
            return
        status = child.launched.process.poll()
        if status is None:
            if child.state is State.STARTING and broker_processes.serves(child.launched):
                self._mark_serving(child)
        elif child.state is State.STOPPING and self._is_stopping:
            child.state = State.ENDED
            self._log(f"Broker {child.number}: stopped")
        elif child.state is State.STOPPING:
            self._relaunch(child)
        elif self._is_stopping:
            child.state = State.ENDED
            self._log(f"Broker {child.number}: ended with status {status}")
        else:
            self._handle_death(child, f"ended with status {status}", now_s)

    def _handle_death(self, child: Child, reason: str, now_s: float) -> None:
        delay_ms = child.policy.record_death((now_s - child.started_s) * 1000)
        event = f"Broker {child.number}: {reason}"
        if delay_ms is None:
            child.state = State.GIVEN_UP
            self._log(
                f"{event}, {child.policy.deaths} times in a row, and is not started again."
                f"{child.launched.last_lines()}"
            )
            # The others would fail too if the property file was broken meanwhile.
            self._abandon_rolling_restart(f"Broker {child.number} did not start again")
            return
        child.state = State.DEAD
        child.restart_due_s = now_s + delay_ms / 1000
        self._log(f"{event}; starts again in {delay_ms / 1000:.0f} s; see {child.output}")

    def _relaunch(self, child: Child) -> None:
        old_stdin = child.launched.process.stdin
        assert old_stdin is not None
        old_stdin.close()
        child.started_s = time.monotonic()
        try:
            child.metrics_port, child.launched = _launch_broker(child.words, child.output)
        except OSError as error:
            # A disk has failed, or memory is short. The other brokers continue.
            self._handle_death(child, f"cannot be started: {error.strerror}", child.started_s)
            return
        child.state = State.STARTING

    def _stop_next(self) -> bool:
        """Send SIGTERM to the last live broker, unless one is stopping. False if none is live."""
        live = [child for child in self._children if child.state in _LIVE]
        if live and not any(child.state is State.STOPPING for child in live):
            # Each broker may take as long as a single one; systemd's own limit is for them all.
            service_manager.notify(f"EXTEND_TIMEOUT_USEC={STOP_LIMIT_S * 1_000_000}")
            self._send_term(live[-1])
        return bool(live)

    def _send_term(self, child: Child) -> None:
        child.state = State.STOPPING
        child.launched.process.terminate()

    def _rolling_restart_step(self) -> None:
        """Restart the next broker once all serve and have no under-replicated partitions: then
        other brokers can lead its partitions."""
        if self._restart_is_requested:
            self._restart_is_requested = False
            self._to_restart = deque(c for c in self._children if c.state is not State.GIVEN_UP)
            self._restart_deadline_s = time.monotonic() + _ROLLING_RESTART_LIMIT_S
            self._log(f"Restarting {len(self._to_restart)} brokers, one after the other")
        if not self._to_restart:
            return
        now_s = time.monotonic()
        if any(child.state not in (State.SERVING, State.GIVEN_UP) for child in self._children):
            # Log recovery may take hours.
            self._restart_deadline_s = now_s + _ROLLING_RESTART_LIMIT_S
            return
        if now_s < self._checked_s + _CHECK_INTERVAL_S:
            return
        self._checked_s = now_s
        if self._is_fully_replicated():
            self._send_term(self._to_restart.popleft())
        elif now_s >= self._restart_deadline_s:
            self._abandon_rolling_restart(
                f"Partitions have lacked replicas for {_ROLLING_RESTART_LIMIT_S:.0f} s"
            )

    def _abandon_rolling_restart(self, reason: str) -> None:
        if self._to_restart:
            not_restarted = ", ".join(str(child.number) for child in self._to_restart)
            self._to_restart.clear()
            self._log(f"{reason}: not restarted: {not_restarted}")

    def _is_fully_replicated(self) -> bool:
        texts = [fetch_text(port) for port in self._metrics_ports().values()]
        return total(texts, _UNDER_REPLICATED) == 0

    def _metrics_ports(self) -> dict[int, int]:
        return {c.number: c.metrics_port for c in self._children if c.state in _LIVE}


def _launch_broker(words: Sequence[str], output: Path) -> tuple[int, LaunchedServer]:
    """Launch a broker. Returns the port of its metrics, and the process. Raises OSError.

    Each start uses a new port: the system may have given the last one to a connection meanwhile.
    """
    port = free_port(_HOST)
    own = f"--override={_METRICS_PORT}={port}"
    return port, broker_processes.launch([*words, own], output, ends_with_parent=True)


def processes_of(text: str) -> int:
    """The number of brokers in `--processes`; auto is one for each core.

    Raises:
        ConfigError: `text` is neither a number nor auto.
    """
    if text == "auto":
        return len(os.sched_getaffinity(0))
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"--processes is a number, or auto: not {text}") from None


@contextmanager
def _handle_signals(handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Call these functions on signals while the context is open."""
    old_handlers = {
        number: signal.signal(number, lambda number, _: handlers[signal.Signals(number)]())
        for number in handlers
    }
    try:
        yield
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


def _check_mounts(properties: Mapping[str, str], processes: int) -> None:
    """
    Raises:
        ConfigError: a log directory is a mount point, so the directories of the other brokers would
            be on another disk.
    """
    for name in broker_processes.log_dirs(properties) if processes > 1 else ():
        if os.path.ismount(name):
            raise ConfigError(
                f"The log directory {name} is where a disk is mounted, so {name}-1 would be on"
                f" another disk: keep the logs in a directory of the disk, such as {name}/kafka"
            )


def _make_directory(directory: Path) -> None:
    """
    Raises:
        ConfigError: another user has prepared the directory, or it cannot be created.
    """
    check_owner(directory, "log.dirs")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"Cannot make the log directory {directory}: {error.strerror}") from error

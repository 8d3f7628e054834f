"""Brokers that cannot be launched again; `tests/integration/test_processes.py` has the rest."""

from __future__ import annotations

import errno
import io
import re
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from kafkapy.common import service_manager
from kafkapy.common.errors import ConfigError
from kafkapy.tools.local import broker_processes
from kafkapy.tools.local.background import LaunchedServer
from kafkapy.tools.local.service_files import service_files
from kafkapy.tools.supervisor import supervisor as module
from kafkapy.tools.supervisor.restart_policy import DEATHS_MAX
from kafkapy.tools.supervisor.supervisor import Child, State, Supervisor


class Ended:
    """A process that has ended."""

    def __init__(self) -> None:
        self.stdin = io.BytesIO()

    def poll(self) -> int:
        return 1


def test_a_broker_whose_disk_failed_leaves_the_supervisor_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> LaunchedServer:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(broker_processes, "launch", refuse)
    said: list[str] = []
    supervisor = Supervisor(1, [], {"log.dirs": str(tmp_path)}, said.append)
    ended: Any = Ended()
    output = tmp_path / "unreadable"
    child = Child(0, [], output, 1, LaunchedServer(ended, output, 0), time.monotonic())
    for _ in range(DEATHS_MAX + 1):
        child.restart_due_s = 0.0
        supervisor._update(child)
    assert child.state is State.GIVEN_UP
    assert said[1] == (
        f"Broker 0: cannot be started: Read-only file system; starts again in 2 s; see {output}"
    )
    assert said[-1] == (
        "Broker 0: cannot be started: Read-only file system, 6 times in a row, and is not started"
        " again."
    )


@pytest.mark.parametrize("port", ["65536", "-2"])
def test_a_port_of_metrics_that_is_none_is_refused_before_a_broker_starts(
    tmp_path: Path, port: str
) -> None:
    """The brokers do not see it: each has a port of its own."""
    properties = {"log.dirs": str(tmp_path), "kafkapy.metrics.port": port}
    with pytest.raises(ConfigError, match=f"{port} for configuration kafkapy.metrics.port: Value"):
        Supervisor(1, [], properties, lambda _: None)


class Running:
    """A process that ends when it is told to."""

    def __init__(self) -> None:
        self.stdin = io.BytesIO()
        self.status: int | None = None

    def poll(self) -> int | None:
        return self.status

    def terminate(self) -> None:
        self.status = 0


def test_it_is_ready_when_signals_are_handled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemd may reload at once what has said that it is ready."""
    handlers = []

    def notify(what: str) -> None:
        if what == service_manager.READY:
            handlers.append(signal.getsignal(signal.SIGHUP))

    monkeypatch.setattr(service_manager, "notify", notify)
    before = signal.getsignal(signal.SIGHUP)
    assert Supervisor(1, [], {"log.dirs": str(tmp_path)}, lambda _: None).run() == 0
    assert len(handlers) == 1
    assert handlers[0] is not before
    assert signal.getsignal(signal.SIGHUP) is before


def test_the_end_of_its_terminal_does_not_restart_its_brokers_under_nohup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def notify(what: str) -> None:
        if what == service_manager.READY:
            signal.raise_signal(signal.SIGHUP)

    monkeypatch.setattr(service_manager, "notify", notify)
    supervisor = Supervisor(1, [], {"log.dirs": str(tmp_path)}, lambda _: None)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert supervisor.run() == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not supervisor._restart_is_requested


def test_a_signal_ends_it_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler runs between any two lines, also while its own thread holds a lock."""
    monkeypatch.setattr(module, "_POLL_S", 0)

    def interrupted(at: int) -> bool:
        """Whether a supervisor that gets a signal at this line ends."""
        supervisor = Supervisor(1, [], {"log.dirs": str(tmp_path)}, lambda _: None)
        running: Any = Running()
        output = tmp_path / "output"
        child = Child(0, [], output, 1, LaunchedServer(running, output, 0), 0.0, State.SERVING)
        supervisor._children.append(child)
        lines = 0

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal lines
            if event == "line":
                lines += 1
                if lines == at:
                    sys.settrace(None)
                    supervisor.stop()
            return trace

        def watch() -> None:
            sys.settrace(trace)
            try:
                supervisor._watch()
            finally:
                sys.settrace(None)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        thread.join(10)
        return not thread.is_alive()

    assert next((at for at in range(1, 40) if not interrupted(at)), None) is None


def test_each_broker_has_the_time_that_the_unit_gives_a_single_one_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or systemd kills the first brokers while the last ones hand over their leaders."""
    monkeypatch.setattr(module, "_POLL_S", 0)
    supervisor = Supervisor(1, [], {"log.dirs": str(tmp_path)}, lambda _: None)
    output = tmp_path / "output"
    sent: list[tuple[str, int]] = []
    for number in range(3):
        running: Any = Running()
        launched = LaunchedServer(running, output, 0)
        child = Child(number, [], output, 1, launched, 0.0, State.SERVING)
        supervisor._children.append(child)

    def notify(state: str) -> None:
        ended = [c for c in supervisor._children if c.launched.process.poll() is not None]
        sent.append((state, len(ended)))

    monkeypatch.setattr(service_manager, "notify", notify)
    supervisor.stop()
    assert supervisor._watch() == 0
    unit = service_files("python", tmp_path, "3", None, None)[1].text
    [limit_s] = re.findall(r"TimeoutStopSec=(\d+)", unit)
    extended = f"EXTEND_TIMEOUT_USEC={limit_s}000000"
    assert sent == [(service_manager.STOPPING, 0), *((extended, count) for count in range(3))]


def test_a_start_that_takes_long_does_not_end_a_rolling_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker may recover its logs for longer than the wait for replicas."""
    said: list[str] = []
    supervisor = Supervisor(2, [], {"log.dirs": str(tmp_path)}, said.append)
    for number in range(2):
        running: Any = Running()
        launched = LaunchedServer(running, tmp_path / "output", 0)
        supervisor._children.append(
            Child(number, [], launched.output, 1, launched, 0.0, State.SERVING)
        )
    first, second = supervisor._children

    def roll(at_s: float, is_replicated: bool) -> None:
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: at_s))
        monkeypatch.setattr(supervisor, "_is_fully_replicated", lambda: is_replicated)
        supervisor._rolling_restart_step()

    supervisor.restart()
    roll(10, True)
    assert first.state is State.STOPPING
    first.state = State.STARTING
    roll(10 + 2 * module._ROLLING_RESTART_LIMIT_S, False)
    first.state = State.SERVING
    roll(20 + 2 * module._ROLLING_RESTART_LIMIT_S, False)  # its replicas catch up
    roll(30 + 2 * module._ROLLING_RESTART_LIMIT_S, True)
    assert second.state is State.STOPPING
    assert said == ["Restarting 2 brokers, one after the other"]


def test_a_property_file_that_was_broken_takes_one_broker_down_and_not_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without replicas no partition is under-replicated, so that did not end the restart."""
    said: list[str] = []
    supervisor = Supervisor(2, [], {"log.dirs": str(tmp_path)}, said.append)
    monkeypatch.setattr(supervisor, "_is_fully_replicated", lambda: True)
    for number in range(3):
        running: Any = Running()
        launched = LaunchedServer(running, tmp_path / "output", 0)
        supervisor._children.append(
            Child(number, [], launched.output, 1, launched, 0.0, State.SERVING)
        )
    ended: Any = Ended()
    monkeypatch.setattr(
        broker_processes, "launch", lambda *_, **__: LaunchedServer(ended, tmp_path / "o", 0)
    )
    supervisor.restart()
    supervisor._rolling_restart_step()
    first, *others = supervisor._children
    while first.state is not State.GIVEN_UP:
        first.restart_due_s = 0.0
        supervisor._update(first)
    supervisor._checked_s = 0.0
    supervisor._rolling_restart_step()
    assert [other.state for other in others] == [State.SERVING] * 2
    assert said[-1] == "Broker 0 did not start again: not restarted: 1, 2"


def test_a_broker_that_starts_again_gets_a_port_of_metrics_that_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it was away, the system may have given its port to a connection of another process."""
    started: list[list[str]] = []

    def launch(words: list[str], output: Path, **_: Any) -> LaunchedServer:
        started.append(words)
        process: Any = Running()
        return LaunchedServer(process, output, 0)

    monkeypatch.setattr(broker_processes, "launch", launch)
    supervisor = Supervisor(1, ["p"], {"log.dirs": str(tmp_path / "logs")}, lambda _: None)
    child = supervisor._child(0, "machine", "127.0.0.1:1")
    taken = child.metrics_port
    with socket.create_server(("127.0.0.1", taken)):
        supervisor._relaunch(child)
        assert child.metrics_port != taken
    for words, port in zip(started, (taken, child.metrics_port), strict=True):
        assert [word for word in words if ".metrics.port=" in word] == [
            f"--override=kafkapy.metrics.port={port}"
        ]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """As one that was made by root, in a run before the service had its own account."""
    supervisor = Supervisor(1, [], {"log.dirs": str(tmp_path)}, lambda _: None)
    (tmp_path / "kafkapy-supervisor.pid").mkdir()
    with pytest.raises(ConfigError, match=f"{tmp_path}/kafkapy-supervisor.pid: Is a directory"):
        supervisor.start()
    (tmp_path / "kafkaServer.out").mkdir()
    with pytest.raises(ConfigError, match=f"broker 0 .* {tmp_path}/kafkaServer.out: Is a dir"):
        supervisor._child(0, "machine", "127.0.0.1:1")

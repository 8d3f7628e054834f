"""Brokers as processes: found by the pid files that they hold, stopped by pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.local import broker_processes as processes
from kafkapy.tools.local.background import LaunchedServer
from tests.harness.processes.idle_servers import IdleServers


def test_a_broker_is_found_on_any_of_its_directories(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with IdleServers() as servers:
        child = servers.start(tmp_path / "a" / processes.PID_FILE)
        (tmp_path / "b" / processes.PID_FILE).write_text(f"{child.pid}\n")

        def found(*names: str) -> int | None:
            return processes.broker_of([str(tmp_path / name) for name in names])

        assert found("a") == found("missing", "b", "a") == child.pid
        assert [found(name) for name in ("b", "missing")] == [None] * 2
        assert processes.is_broker(child.pid)
        assert child.pid in processes.running_brokers()
        assert not processes.is_broker(os.getpid())


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, ["/tmp/kafka-logs"]),
        ({"log.dir": "/a"}, ["/a"]),
        ({"log.dir": "/a", "log.dirs": "/b, /c,"}, ["/b", "/c"]),
    ],
)
def test_log_dirs(properties: dict[str, str], expected: list[str]) -> None:
    assert processes.log_dirs(properties) == expected


def test_a_broker_that_is_not_ready_in_time_is_reported_with_its_output(tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.write_text("of an earlier start\nrecovering t-0\n")
    with IdleServers() as servers:
        child = servers.start(tmp_path / processes.PID_FILE)
        launched = LaunchedServer(child, output, len("of an earlier start\n"))
        with pytest.raises(ConfigError, match=r"^The broker is not ready after 0 s\.\n  recov"):
            processes.wait_until_serving(launched, 0.1)


def test_stop_waits_for_the_end() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    assert processes.stop(child.pid, 30)
    assert child.wait() == -signal.SIGTERM
    assert processes.stop(child.pid, 0)


def test_a_process_that_ends_at_the_same_moment_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    opened = os.pidfd_open

    def open_before_the_end(pid: int) -> int:
        handle = opened(pid)
        child.wait(30)
        return handle

    monkeypatch.setattr(os, "pidfd_open", open_before_the_end)
    assert processes.stop(child.pid, 30)


def test_stop_gives_up_at_its_limit() -> None:
    program = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True);"
        "signal.pause()"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        assert not processes.stop(child.pid, 0)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def test_a_daemon_that_ends_is_reported_with_its_last_words(tmp_path: Path) -> None:
    words = ["/nope/server.properties"]
    with pytest.raises(ConfigError, match=r"ended with status 1\.\n  Cannot read /nope"):
        processes.start_in_background(words, [str(tmp_path / "logs")])
    assert (tmp_path / "logs" / processes.OUTPUT_FILE).exists()


def test_output_goes_where_log_dir_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "elsewhere"))
    with pytest.raises(ConfigError):
        processes.start_in_background(["/nope"], [str(tmp_path / "logs")])
    assert (tmp_path / "elsewhere" / processes.OUTPUT_FILE).exists()


def test_an_output_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOG_DIR", raising=False)
    (tmp_path / "kafkaServer.out").mkdir()
    with pytest.raises(ConfigError, match=f"{tmp_path}/kafkaServer.out: Is a directory"):
        processes.start_in_background([], [str(tmp_path)])

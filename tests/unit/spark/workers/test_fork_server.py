"""fork server: which callers it may stand in for, and the life of what it forks."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from dev.verify.leftovers import outlives
from kafkapy.spark.source.batch_reader import PUSHDOWN_WORKER
from kafkapy.spark.workers import fork_server, fork_server_launcher
from kafkapy.spark.workers.fork_server import (
    ProcessSpec,
    decode_request,
    is_compatible,
    receive_request,
)
from kafkapy.spark.workers.fork_server_launcher import (
    LENGTH_BYTES,
    READY,
    SOCKET_VARIABLE,
    call_with_short_path,
)
from tests.harness.plugins import leaks
from tests.harness.processes.waiting import wait_until

OWN = ProcessSpec("/bin/python", "/here", (), {"HOME": "/root", "OMP_NUM_THREADS": "1"})
SPARK = {"SPARK_REUSE_WORKER": "1", "PYTHON_WORKER_FACTORY_SECRET": "s", "PYSPARK_PYTHON": "p"}
ASKED = ProcessSpec(
    "/bin/python", "/here", ("-m", "pyspark.daemon", "m"), {"HOME": "/root", **SPARK}
)
LIMIT_S = 60.0


def with_environ(**changed: str) -> ProcessSpec:
    return ASKED._replace(environ={**ASKED.environ, **changed})


@pytest.mark.parametrize(
    "asked",
    [
        ASKED,
        ASKED._replace(arguments=("-m", "pyspark.sql.streaming.python_streaming_source_runner")),
        with_environ(OMP_NUM_THREADS="1"),
        with_environ(SHLVL="3", _="/bin/sh", PWD="/elsewhere"),
        with_environ(PYTHONPATH=""),
    ],
)
def test_what_spark_tells_its_workers_makes_no_difference(asked: ProcessSpec) -> None:
    assert is_compatible(OWN, asked)


@pytest.mark.parametrize(
    "asked",
    [
        ASKED._replace(arguments=()),
        ASKED._replace(arguments=("-m",)),
        ASKED._replace(arguments=("-c", "pyspark.daemon")),
        ASKED._replace(arguments=("-m", "my.daemon", "pyspark.worker")),
        ASKED._replace(executable="/usr/bin/python3"),
        ASKED._replace(directory="/"),
        ASKED._replace(environ=SPARK),  # without HOME
        with_environ(HOME="/home"),
        with_environ(OMP_NUM_THREADS="4"),
        with_environ(PYTHONPATH="/mine"),
        with_environ(OF_EXECUTORS="1"),
        with_environ(PYSPARK_EXECUTOR_MEMORY_MB="512"),
        with_environ(PYTHON_FAULTHANDLER_DIR="/tmp/f"),
    ],
)
def test_anything_else_does(asked: ProcessSpec) -> None:
    assert not is_compatible(OWN, asked)


def test_what_shells_remove_makes_no_difference() -> None:
    """bash and dash run between the fork server's parent and the workers."""
    removed = {"PS1": "(.venv) ", "PS2": "> ", "BASH_FUNC_f%%": "() { :; }", "a.b": "1"}
    assert is_compatible(OWN._replace(environ={**OWN.environ, **removed}), ASKED)


def test_a_path_is_its_entries_in_order() -> None:
    own = OWN._replace(environ={**OWN.environ, "PYTHONPATH": "/a:/b"})
    assert is_compatible(own, with_environ(PYTHONPATH="/a:/b:/b:/a"))  # Spark says it twice
    assert not is_compatible(own, with_environ(PYTHONPATH="/b:/a"))
    assert not is_compatible(own, ASKED)


@pytest.mark.parametrize("text", [b"", b"python\0/here", b"python\0/here\0many\0-m"])
def test_what_no_launcher_says(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"unpack|invalid literal"):
        decode_request(text)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (b"", ConnectionResetError),
        ((9).to_bytes(LENGTH_BYTES, "big") + b"python", ConnectionResetError),
        ((9).to_bytes(LENGTH_BYTES, "big") + b"p\0/here\0" + b"0", ValueError),  # no streams
    ],
)
def test_a_launcher_that_says_too_little(message: bytes, error: type[Exception]) -> None:
    launcher, fork_servers = socket.socketpair()
    with launcher, fork_servers:
        launcher.sendall(message)
        launcher.shutdown(socket.SHUT_WR)
        with pytest.raises(error):
            receive_request(fork_servers)
        assert launcher.recv(1) == READY


class Running:
    """A fork server of this process's, with launchers as Spark starts them."""

    def __init__(self, environ: dict[str, str]) -> None:
        started = fork_server.start(environ)
        assert started is not None
        self.pid = started.pid
        self.environ = environ | started.environ
        self.socket = Path(started.environ[SOCKET_VARIABLE])
        self._lifeline: int | None = started.lifeline
        # A launcher waits 20 s for the server's imports, which take longer on a busy machine.
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(LIMIT_S)
            wait_until(partial(self._connects, probe), "the fork server")
            assert probe.recv(1) == READY

    def _connects(self, probe: socket.socket) -> bool:
        try:
            call_with_short_path(probe.connect, str(self.socket))
        except (FileNotFoundError, ConnectionRefusedError):  # not bound, or does not listen, yet
            return False
        return True

    def daemon(self, **environ: str) -> subprocess.Popen[bytes]:
        """A pyspark.daemon that has said where it listens."""
        arguments = [
            "-I",
            "-S",
            fork_server_launcher.__file__,
            "-m",
            "pyspark.daemon",
            "pyspark.worker",
        ]
        process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**self.environ, "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER", **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert struct.unpack(">i", process.stdout.read(4)) > (0,)
        return process

    def end(self) -> None:
        """Close the lifeline, as the end of the JVM does, and wait for the fork server."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
            os.waitpid(self.pid, 0)


def children(pid: int) -> set[int]:
    return {int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


@pytest.fixture
def running() -> Iterator[Running]:
    running = Running(os.environ | fork_server.FIXED_ENVIRONMENT)
    yield running
    running.end()


def closed(process: subprocess.Popen[bytes]) -> int:
    """The exit status of a daemon whose stdin ends."""
    process.communicate(timeout=LIMIT_S)
    return process.returncode


def test_a_daemon_is_its_child_and_ends_with_its_stdin(running: Running) -> None:
    assert running.socket.parent.stat().st_mode & 0o777 == 0o700
    first, second = running.daemon(), running.daemon()
    pids = children(running.pid)
    assert len(pids) == 2
    assert all(os.getpgid(pid) == pid for pid in pids)  # their workers' group, as Spark knows it
    alone = running.daemon(**{SOCKET_VARIABLE: "/nowhere"})
    assert children(running.pid) == pids
    assert closed(first) == closed(second) == closed(alone)
    wait_until(lambda: not children(running.pid), "the end of the daemons")


def test_a_caller_that_does_not_fit_goes_alone(running: Running) -> None:
    process = running.daemon(OF_EXECUTORS="1")
    assert not children(running.pid)
    closed(process)


def test_whoever_ends_the_launcher_ends_the_daemon(running: Running) -> None:
    process = running.daemon()
    (daemon,) = children(running.pid)
    other = running.daemon()
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT_S) == -signal.SIGTERM
    assert not outlives(daemon, LIMIT_S)  # though its stdin is open
    closed(process)
    assert other.poll() is None
    closed(other)


def test_a_killed_daemon_is_told_to_spark(running: Running) -> None:
    process = running.daemon()
    (daemon,) = children(running.pid)
    os.kill(daemon, signal.SIGKILL)
    assert process.wait(LIMIT_S) == 128 + signal.SIGKILL
    closed(process)


def test_all_ends_with_the_lifeline(running: Running) -> None:
    process = running.daemon()
    (daemon,) = children(running.pid)
    running.end()
    assert not outlives(daemon, LIMIT_S)
    assert process.wait(LIMIT_S) != 0
    assert not running.socket.parent.exists()
    closed(process)


LOADED = f"""
import sys
from kafkapy.spark.workers import fork_server
fork_server.preload()
print(fork_server.has_threads(), {PUSHDOWN_WORKER!r} in sys.modules)
"""


def test_what_it_loads_starts_no_thread_and_looks_like_no_other_worker() -> None:
    environ = os.environ | fork_server.FIXED_ENVIRONMENT
    done = subprocess.run(
        [sys.executable, "-c", LOADED], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False False\n"


def test_a_thread_is_seen() -> None:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    assert fork_server.has_threads()
    ended.set()
    thread.join()


def test_a_fork_server_is_not_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = leaks.open_resources()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    assert fork_server.start(dict(os.environ)) is None
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(tmp_path / "no-python"))
        assert fork_server.start(dict(os.environ)) is None
    assert list(tmp_path.iterdir()) == []
    monkeypatch.delattr(os, "pidfd_open")
    assert fork_server.start(dict(os.environ)) is None
    assert leaks.opened_since(before) == []


@pytest.mark.parametrize("open_already", [0, 50])
def test_its_descriptors_are_handed_over(open_already: int, tmp_path: Path) -> None:
    """Whatever else comes and goes in this process meanwhile."""
    (tmp_path / "f").touch()
    others = [os.open(tmp_path / "f", os.O_RDONLY) for _ in range(open_already)]
    for fd in others[::2]:
        os.close(fd)
    before = leaks.open_resources()
    running = Running(os.environ | fork_server.FIXED_ENVIRONMENT)
    more = os.open(tmp_path / "f", os.O_RDONLY)
    running.end()
    assert os.fstat(more).st_size == 0, "it is still open"
    for fd in (*others[1::2], more):
        os.close(fd)
    assert leaks.opened_since(before) == []

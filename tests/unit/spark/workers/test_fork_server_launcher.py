"""The launcher's message to a fork server, and the fallback to a plain Python without one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.spark.workers import fork_server_launcher
from kafkapy.spark.workers.fork_server import ProcessSpec, decode_request, receive_request
from kafkapy.spark.workers.fork_server_launcher import (
    FORKED,
    LENGTH_BYTES,
    READY,
    REFUSED,
    SOCKET_VARIABLE,
    encode_request,
    exit_status,
    request_worker,
)
from tests.harness.processes.waiting import LIMIT_S

WORDS = ["-m", "pyspark.daemon", "two words", "\udcff"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "socket")


@pytest.fixture
def serve(path: str) -> Iterator[Callable[[Callable[[socket.socket], None]], None]]:
    """`serve(answer)`: a fork server that does so to its first launcher."""
    threads: list[threading.Thread] = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def serve(answer: Callable[[socket.socket], None]) -> None:
        def one() -> None:
            with listener.accept()[0] as connection:
                answer(connection)

        threads.append(threading.Thread(target=one))
        threads[-1].start()

    yield serve
    for thread in threads:
        thread.join()
    listener.close()


def handed_over(path: str, arguments: list[str]) -> int | None:
    """The exit status of the worker that the fork server forked; None if it forked none."""
    with socket.socket(socket.AF_UNIX) as connection:
        return exit_status(connection) if request_worker(connection, path, arguments) else None


def test_it_says_what_it_was_called_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_SAYS", "name=value, \udcff")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.chdir(tmp_path)
    message = encode_request(WORDS)
    assert int.from_bytes(message[:LENGTH_BYTES]) == len(message) - LENGTH_BYTES
    caller = decode_request(message[LENGTH_BYTES:])
    assert caller == ProcessSpec(sys.executable, str(tmp_path), tuple(WORDS), dict(os.environ))
    assert caller.environ["SPARK_SAYS"] == "name=value, \udcff"


def test_it_ends_as_the_worker_does(
    path: str,
    serve: Callable[[Callable[[socket.socket], None]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LARGE", "x" * 1_000_000)  # more than a socket takes at once
    found: list[ProcessSpec] = []
    streams: list[os.stat_result] = []

    def take(connection: socket.socket) -> None:
        caller, given = receive_request(connection)
        found.append(caller)
        streams.extend(os.fstat(stream) for stream in given)
        for stream in given:
            os.close(stream)
        connection.sendall(FORKED + bytes([7]))

    serve(take)
    assert handed_over(path, WORDS) == 7
    assert found[0].arguments == tuple(WORDS)
    assert len(found[0].environ["LARGE"]) == 1_000_000
    assert streams == [os.fstat(stream) for stream in range(3)]


@pytest.mark.parametrize("said", [b"", b"?", READY, READY + REFUSED, READY + b"?"])
def test_it_goes_alone_if_the_fork_server_takes_nothing(
    path: str, serve: Callable[[Callable[[socket.socket], None]], None], said: bytes
) -> None:
    serve(lambda connection: connection.sendall(said))
    assert handed_over(path, WORDS) is None


def test_a_fork_server_that_dies_after_it_took_over_is_a_failure(
    path: str, serve: Callable[[Callable[[socket.socket], None]], None]
) -> None:
    def take_and_die(connection: socket.socket) -> None:
        for stream in receive_request(connection)[1]:
            os.close(stream)
        connection.sendall(FORKED)

    serve(take_and_die)
    assert handed_over(path, WORDS) == 1


def test_a_worker_that_ends_at_once_has_run(
    path: str, serve: Callable[[Callable[[socket.socket], None]], None]
) -> None:
    """It may be gone before the launcher has returned from sending: it must not run twice."""
    gone = threading.Event()

    class Slow(socket.socket):
        def sendmsg(self, *args: Any) -> int:
            sent = super().sendmsg(*args)
            assert gone.wait(LIMIT_S)
            return sent

    def run(connection: socket.socket) -> None:
        for stream in receive_request(connection)[1]:
            os.close(stream)
        connection.sendall(FORKED + bytes([7]))
        connection.close()
        gone.set()

    serve(run)
    with Slow(socket.AF_UNIX) as connection:
        assert request_worker(connection, path, WORDS)
        assert exit_status(connection) == 7


def test_a_fork_server_that_does_not_speak_is_not_waited_for(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork_server_launcher, "READY_LIMIT_S", 0.01)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        assert handed_over(path, WORDS) is None


@pytest.mark.parametrize("variable", [{}, {SOCKET_VARIABLE: "/nowhere"}])
def test_it_becomes_the_python_of_these_words(variable: dict[str, str]) -> None:
    code = "import sys; print(sys.executable, sys.argv[1:], sys.flags.isolated); sys.exit(3)"
    launcher = ["-I", "-S", fork_server_launcher.__file__]
    done = subprocess.run(
        [sys.executable, *launcher, "-c", code, "two words"],
        env=variable,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"{sys.executable} ['two words'] 0\n"
    assert done.returncode == 3

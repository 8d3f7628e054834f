"""Brokers that are forked from a process (a forkserver) that has imported their modules.

Imports take 0.25 of the 0.3 s of processor time of a broker's start, and a run of all tests starts
700 brokers. Tests of the console script itself start the script: tests/cli, `kafkapy.testing`, the
pages.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from math import inf
from multiprocessing import connection, forkserver
from pathlib import Path
from typing import Final

from kafkapy.cli import main
from tests.harness.plugins import leaks

MODULES: Final = (
    *("kafkapy.cli.commands.server", "kafkapy.server.process", "kafkapy.client.properties"),
    *("kafkapy.zk.kazoo.adapter", __name__),
)
_OF_A_TEST: Final = "PYTEST_CURRENT_TEST"

_context = multiprocessing.get_context("forkserver")
_inherited: Mapping[str, str] | None = None
# Starting a process polls all others, and an exit status can be read only once.
_POLL_INTERVAL_S: Final = 0.2
_reading = threading.Lock()


def prepare() -> None:
    """Start the forkserver; it ends with this process."""
    global _inherited
    _context.set_forkserver_preload(list(MODULES))
    forkserver.ensure_running()
    _inherited = _environment()
    leaks.count_children_of(forkserver._forkserver._forkserver_pid)


def can_fork(command: Sequence[str]) -> bool:
    """Whether a fork can replace the command: it starts a broker, in the environment that the
    forkserver has inherited."""
    ours = [str(Path(sys.executable).parent / "kafkapy"), "server", "start"]
    return list(command[:3]) == ours and _inherited == _environment()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != _OF_A_TEST}


class ForkedBroker:
    """A broker's forked process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, command: Sequence[str], output: Path) -> None:
        self._command = command
        self._status: int | None = None
        arguments = (list(command[1:]), str(output), os.getcwd())
        self._process = _context.Process(target=run, args=arguments, daemon=True)
        with _reading:
            self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        """The exit status, if it has ended."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status. Raises subprocess.TimeoutExpired."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self._command, timeout or 0)
        return status

    def kill(self) -> None:
        """SIGKILL, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        """The exit status, once the process has ended.

        Several threads may wait for it. A thread that polls a sentinel is not woken when another
        closes it, so each looks again from time to time.
        """
        end_s = inf if timeout is None else time.monotonic() + timeout
        while self._status is None:
            left_s = max(0.0, end_s - time.monotonic())
            try:
                has_ended = connection.wait([self._process.sentinel], min(left_s, _POLL_INTERVAL_S))
            except ValueError:  # another thread has seen the end meanwhile, and closed the process
                return self._status
            with _reading:
                if has_ended and self._status is None:
                    self._process.join()
                    self._status = self._process.exitcode
                    self._process.close()
            if time.monotonic() >= end_s:
                break
        return self._status


def run(arguments: list[str], output: str, directory: str) -> None:
    """Run `kafkapy` with these arguments in this process, and append its output to a file."""
    os.chdir(directory)
    sink = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(sink, stream.fileno())
    os.close(sink)
    sys.argv = ["kafkapy", *arguments]
    main.main()

"""Broker processes of this machine: found, started in the background, stopped.

A running broker keeps `kafkapy.pid` in its first log directory. Only processes that are kafkapy
brokers are ever signalled: a stale file whose pid belongs to someone else now is not believed.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError

PID_FILE: Final = "kafkapy.pid"
OUTPUT_FILE: Final = "kafkaServer.out"
DEFAULT_LOG_DIR: Final = "/tmp/kafka-logs"
_POLL_S: Final = 0.02
_OUTPUT_LINES: Final = 5
_SERVING: Final = b"] started (kafkapy "
_LISTENING: Final = re.compile(rb"Awaiting socket connections on (\S+:\d+)\.")
_PROC: Final = Path("/proc")


def log_dirs(properties: Mapping[str, str]) -> list[str]:
    """The log directories that broker properties name."""
    text = properties.get("log.dirs") or properties.get("log.dir") or DEFAULT_LOG_DIR
    return comma_separated(text)


def broker_of(directories: Sequence[str], proc: Path = _PROC) -> int | None:
    """The pid of the broker that runs on these log directories, if one does."""
    for directory in directories:
        try:
            pid = int((Path(directory) / PID_FILE).read_text())
        except (OSError, ValueError):
            continue
        if is_broker(pid, proc):
            return pid
    return None


def running_brokers(proc: Path = _PROC) -> list[int]:
    """The pids of all of this user's kafkapy brokers."""
    pids = [int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()]
    return sorted(pid for pid in pids if is_broker(pid, proc))


def is_broker(pid: int, proc: Path = _PROC) -> bool:
    """Whether a process of this user runs `kafkapy server start`."""
    words = command_line(pid, proc)
    if pid == os.getpid():
        return False
    at = next((i for i, word in enumerate(words) if "kafkapy" in word), None)
    return at is not None and words[at + 1 : at + 3] == ["server", "start"]


def command_line(pid: int, proc: Path = _PROC) -> list[str]:
    """The words that a process of this user was started with; none if there is no such process."""
    directory = proc / str(pid)
    try:
        words = (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")
        return words if directory.stat().st_uid == os.geteuid() else []
    except OSError:
        return []


@dataclass(frozen=True, slots=True)
class Launched:
    """A broker on its way; `begin` is where its part of the output file starts."""

    process: subprocess.Popen[bytes]
    output: Path
    begin: int


def launch(words: Sequence[str], output: Path, *, is_ours: bool = False) -> Launched:
    """Start `kafkapy server start` with these words; what it says is appended to `output`.

    With `is_ours` it ends with this process, however that ends.
    """
    words = [*words, "--until-eof"] if is_ours else words
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as sink:
        begin = sink.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "kafkapy.cli.main", "server", "start", *words],
            stdin=subprocess.PIPE if is_ours else subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Launched(process, output, begin)


def wait_until_serving(launched: Launched, limit_s: float) -> None:
    """Return when a launched broker serves.

    Raises:
        ConfigError: it ended, or was not ready in time; with the end of its output.
    """
    for _ in range(int(limit_s / _POLL_S)):
        try:
            status = launched.process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            # The pid file comes early: a broker that recovers its logs has one long before it
            # serves.
            if _SERVING in launched.output.read_bytes()[launched.begin :]:
                return
            continue
        raise ConfigError(f"The broker ended with status {status}.{_end_of(launched.output)}")
    raise ConfigError(f"The broker is not ready after {limit_s:.0f} s; see {launched.output}")


def first_address(launched: Launched) -> str:
    """Where the first listener of a broker that serves was bound: host:port."""
    found = _LISTENING.search(launched.output.read_bytes(), launched.begin)
    assert found is not None, launched.output
    return found[1].decode()


def start_in_background(
    words: Sequence[str], directories: Sequence[str], limit_s: float
) -> tuple[int, Path]:
    """Start `kafkapy server start` with these words; returns when it serves.

    Returns its pid and the file that gets its output: $LOG_DIR/kafkaServer.out, or in the log
    directory.

    Raises:
        ConfigError: it ended, or was not ready in time; with the end of its output.
    """
    output = Path(os.environ.get("LOG_DIR") or directories[0]) / OUTPUT_FILE
    launched = launch(words, output)
    wait_until_serving(launched, limit_s)
    return launched.process.pid, output


def stop(pid: int, limit_s: float, sent: int = signal.SIGTERM) -> bool:
    """Signal a process and wait for its end; False when the limit passed first."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        signal.pidfd_send_signal(handle, sent)
        ended = select.poll()  # not select(): it knows descriptors below 1,024 only
        ended.register(handle, select.POLLIN)
        return bool(ended.poll(limit_s * 1000))
    finally:
        os.close(handle)


def _end_of(output: Path) -> str:
    lines = output.read_text(errors="replace").splitlines()[-_OUTPUT_LINES:]
    return "".join(f"\n  {line}" for line in lines)

"""Finds, starts and stops broker processes on this machine.

A running broker holds `kafkapy.pid` locked in its first log directory. Only the process that holds
the lock gets signals.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import select
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError
from kafkapy.tools.local import background, pid_files
from kafkapy.tools.local.background import LaunchedServer

PID_FILE: Final = "kafkapy.pid"
SUPERVISOR_PID_FILE: Final = "kafkapy-supervisor.pid"
OUTPUT_FILE: Final = "kafkaServer.out"
SUPERVISOR_OUTPUT_FILE: Final = "kafkapy-supervisor.out"
DEFAULT_LOG_DIR: Final = "/tmp/kafka-logs"
_POLL_S: Final = 0.02
_SERVING: Final = b"] started (kafkapy "
_LISTENING: Final = re.compile(rb"Awaiting socket connections on (\S+:\d+)\.")


def log_dirs(properties: Mapping[str, str]) -> list[str]:
    """The log directories in broker properties.

    Raises:
        ConfigError: there is none.
    """
    text = properties.get("log.dirs") or properties.get("log.dir") or DEFAULT_LOG_DIR
    found = comma_separated(text)
    if not found:
        raise ConfigError("log.dirs is empty: name at least one directory")
    return found


def broker_of(directories: Sequence[str]) -> int | None:
    """The pid of the running broker of these log directories, if any."""
    found = (pid_files.holder(Path(directory) / PID_FILE) for directory in directories)
    return next((pid for pid in found if pid is not None), None)


def running_brokers() -> list[int]:
    """The pids of all of this user's kafkapy brokers. For supervised brokers, the pid of the
    supervisor, which would start them again."""
    supervisors = pid_files.holders(SUPERVISOR_PID_FILE)
    brokers = [pid for pid in pid_files.holders(PID_FILE) if _parent(pid) not in supervisors]
    return supervisors + brokers


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])


def supervisor_of(directories: Sequence[str]) -> int | None:
    """The pid of the supervisor whose first broker has these log directories; None if none runs."""
    return pid_files.holder(Path(directories[0]) / SUPERVISOR_PID_FILE)


def is_supervisor(pid: int) -> bool:
    """Whether a process of this user is a supervisor of brokers."""
    return pid_files.holds(pid, SUPERVISOR_PID_FILE)


def is_broker(pid: int) -> bool:
    """Whether a process of this user is a kafkapy broker."""
    return pid_files.holds(pid, PID_FILE)


def launch(
    words: Sequence[str], output: Path, *, ends_with_parent: bool = False, notify: str = ""
) -> LaunchedServer:
    """Start `kafkapy server start` with these arguments. Its output is appended to `output`.

    With `ends_with_parent`, the broker ends when this process ends, for whatever reason. It
    notifies the ReadyNotice at `notify`.
    """
    words = [*words, "--until-eof"] if ends_with_parent else words
    return background.launch(
        ["server", "start", *words], output, ends_with_parent=ends_with_parent, notify=notify
    )


def wait_until_serving(
    launched: LaunchedServer, limit_s: float | None, is_ready: Callable[[], bool] | None = None
) -> None:
    """Wait until a launched broker serves. Without a limit (None), waits until it serves or ends.

    Whether it serves is what `is_ready` returns, or what its output says.

    Raises:
        ConfigError: it ended, or was not ready in time; with the end of its output.
    """
    polls = itertools.count() if limit_s is None else range(int(limit_s / _POLL_S))
    for _ in polls:
        try:
            status = launched.process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            # Not the pid file: a broker that recovers its logs has one long before it serves.
            if is_ready() if is_ready else serves(launched):
                return
            continue
        raise ConfigError(f"The broker ended with status {status}.{launched.last_lines()}")
    # The lines themselves: a temporary output file is gone when the message is read.
    raise ConfigError(f"The broker is not ready after {limit_s:.0f} s.{launched.last_lines()}")


def serves(launched: LaunchedServer) -> bool:
    """Whether a launched broker serves, according to its output."""
    return _SERVING in launched.output_text()


def bound_addresses(launched: LaunchedServer) -> list[str]:
    """The bound addresses of a serving broker's listeners, in their order: host:port."""
    return [address.decode() for address in _LISTENING.findall(launched.output_text())]


def start_in_background(
    words: Sequence[str], directories: Sequence[str], name: str = OUTPUT_FILE
) -> tuple[int, Path]:
    """Start `kafkapy server start` with these words. Returns when it serves.

    Returns its pid and its output file: `name` in $LOG_DIR, or in the log directory. The wait has
    no time limit, because the recovery of large logs can take long. If the wait is interrupted,
    the broker is stopped.

    Raises:
        ConfigError: it ended (with the end of its output), or the output cannot be written.
    """
    output = Path(os.environ.get("LOG_DIR") or directories[0]) / name
    notices = contextlib.closing(background.ReadyNotice())
    with background.end_on_failure() as started, notices as notice:
        try:
            launched = launch(words, output, notify=notice.address)
        except OSError as error:
            raise ConfigError(
                f"Cannot start a broker with its output in {output}: {error.strerror}"
            ) from error
        started.append(launched)
        wait_until_serving(launched, None, notice.is_received)
    return launched.process.pid, output


def stop(pid: int, limit_s: float, signal_number: int = signal.SIGTERM) -> bool:
    """Signal a process and wait for its end. Returns False if the limit passed first."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            signal.pidfd_send_signal(handle, signal_number)
        poller = select.poll()  # not select(), which supports only descriptors below 1,024
        poller.register(handle, select.POLLIN)
        return bool(poller.poll(limit_s * 1000))
    finally:
        os.close(handle)

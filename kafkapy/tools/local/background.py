"""Launches servers as processes, and ends them if their start fails."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafkapy.common import service_manager

_END_LIMIT_S: Final = 20.0
_OUTPUT_LINES: Final = 5
_NOTIFY_ADDRESS: Final = "NOTIFY_SOCKET"


@dataclass(frozen=True, slots=True)
class LaunchedServer:
    """A launched server. Its output begins at position `output_start` of the file `output`."""

    process: subprocess.Popen[bytes]
    output: Path
    output_start: int

    def output_text(self) -> bytes:
        """The output so far; empty if it cannot be read."""
        try:
            with self.output.open("rb") as file:
                file.seek(self.output_start)
                return file.read()
        except OSError:
            return b""

    def last_lines(self) -> str:
        """The last lines of its output, indented. If there are none, the error of a write to it."""
        lines = self.output_text().decode(errors="replace").splitlines()[-_OUTPUT_LINES:]
        return "".join(f"\n  {line}" for line in lines) or self._write_error()

    def _write_error(self) -> str:
        try:
            with self.output.open("ab") as file:
                file.write(b"\n")
        except OSError as error:
            return f" Its output in {self.output} cannot be written: {error.strerror}"
        return ""


class ReadyNotice:
    """Receives the notification of a server that it is ready (`sd_notify`), until `close`.

    The output of the server does not suffice: it may be on a full disk.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind("")  # the kernel chooses a name in the abstract namespace

    def close(self) -> None:
        self._socket.close()

    @property
    def address(self) -> str:
        """The address for the server's environment."""
        name: bytes = self._socket.getsockname()
        return "@" + name[1:].decode()

    def is_received(self) -> bool:
        """Whether the server has notified that it is ready, since the last call."""
        try:
            return self._socket.recv(100) == service_manager.READY.encode()
        except BlockingIOError:
            return False


def launch(
    words: Sequence[str],
    output: Path,
    *,
    ends_with_parent: bool = False,
    module: str = "kafkapy.cli.main",
    notify: str = "",
) -> LaunchedServer:
    """Start `kafkapy`, or another module, with these arguments. Its output is appended to `output`.

    With `ends_with_parent`, its standard input is a pipe, which closes when this process ends.
    `notify` is the address of a ReadyNotice. Without it, the server notifies nobody: the service
    manager of this process must not take its notifications for those of this process.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as output_file:
        output_start = output_file.tell()
        process = subprocess.Popen(
            # -P: modules in the current directory must not shadow those of the library.
            [sys.executable, "-P", "-m", module, *words],
            stdin=subprocess.PIPE if ends_with_parent else subprocess.DEVNULL,
            stdout=output_file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, _NOTIFY_ADDRESS: notify},
        )
    return LaunchedServer(process, output, output_start)


@contextmanager
def end_on_failure() -> Iterator[list[LaunchedServer]]:
    """A list of the servers launched in the block. If the block fails, all are ended, the last one
    first.
    """
    started: list[LaunchedServer] = []
    try:
        yield started
    except BaseException:
        for launched in reversed(started):
            _stop_process(launched.process)
        raise


def _stop_process(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_LIMIT_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt, SystemExit):  # another signal
        process.kill()
        process.wait()

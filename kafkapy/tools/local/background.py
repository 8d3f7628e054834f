"""Launches servers as processes, and ends them if their start fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_END_LIMIT_S: Final = 20.0
_OUTPUT_LINES: Final = 5


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
        """The last lines of its output, indented."""
        lines = self.output_text().decode(errors="replace").splitlines()[-_OUTPUT_LINES:]
        return "".join(f"\n  {line}" for line in lines)


def launch(words: Sequence[str], output: Path, *, ends_with_parent: bool = False) -> LaunchedServer:
    """Start `kafkapy` with these arguments. Its output is appended to `output`.

    With `ends_with_parent`, its standard input is a pipe, which closes when this process ends.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as output_file:
        output_start = output_file.tell()
        process = subprocess.Popen(
            # -P: modules in the current directory must not shadow those of the library.
            [sys.executable, "-P", "-m", "kafkapy.cli.main", *words],
            stdin=subprocess.PIPE if ends_with_parent else subprocess.DEVNULL,
            stdout=output_file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
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

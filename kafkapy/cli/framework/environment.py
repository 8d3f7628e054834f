"""The environment of a command: its streams, and its connections to brokers.

Tests replace the whole environment.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from kafkapy.client.transport import Connector


def _null_stream(mode: str) -> TextIO:
    """A stream on the null device. It stays open until the process ends."""
    return cast("TextIO", open(os.devnull, mode, errors="replace"))


@dataclass(slots=True)
class Environment:
    """The environment of one run. `debug` enables tracebacks; a `connector` replaces sockets.

    A stream that was closed when the process started (`>&-`) is replaced by the null device.
    """

    stdin: TextIO = field(default_factory=lambda: sys.stdin or _null_stream("r"))
    stdout: TextIO = field(default_factory=lambda: sys.stdout or _null_stream("w"))
    stderr: TextIO = field(default_factory=lambda: sys.stderr or _null_stream("w"))
    debug: bool = False
    connector: Connector | None = None

    @property
    def on_terminal(self) -> bool:
        """Whether stdout is a terminal."""
        return self.stdout.isatty()

    @property
    def interactive(self) -> bool:
        """Whether stdin and stdout are terminals (Java's `System.console()`)."""
        return self.stdin.isatty() and self.stdout.isatty()

    def abandon_stdout(self) -> None:
        """Replace a stdout that cannot be written, so that flushing at exit does not fail."""
        self.stdout = _null_stream("w")
        sys.stdout = self.stdout

    def write(self, text: str) -> None:
        """Write text of the result, unchanged."""
        self.stdout.write(text)

    def line(self, text: str = "") -> None:
        """Write one line of the result."""
        self.stdout.write(text + "\n")

    def warn(self, text: str) -> None:
        """Write one line to stderr: a warning, an error or a hint."""
        self.stdout.flush()
        self.stderr.write(text + "\n")
        self.stderr.flush()

"""The environment of a command: its streams, and its connections to brokers.

Tests replace the whole environment.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TextIO, cast

if TYPE_CHECKING:
    from kafkapy.client.transport import Connector

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # but tabs and line feeds


def visible(text: str) -> str:
    """A text for a terminal, with control characters as `\\u001b`. Clients choose their client ids
    and the names of their groups, and must not control the terminals of operators.
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


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

    def abandon_output(self) -> None:
        """Continue without output, after the reader of stderr has closed the pipe."""
        self.abandon_stdout()
        self.stderr = _null_stream("w")
        sys.stderr = self.stderr

    def write(self, text: str) -> None:
        """Write text of the result, unchanged."""
        self.stdout.write(text)

    def line(self, text: str = "") -> None:
        """Write one line of the result; to a terminal as `visible`."""
        self.stdout.write((visible(text) if self.on_terminal else text) + "\n")

    def warn(self, text: str) -> None:
        """Write one line to stderr: a warning, an error or a hint; to a terminal as `visible`."""
        self.stdout.flush()
        self.stderr.write((visible(text) if self.stderr.isatty() else text) + "\n")
        self.stderr.flush()

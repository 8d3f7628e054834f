"""The process as a command sees it: streams, a reader or a pipe, the way to brokers.

Tests replace it whole.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from kafkapy.client.transport import Connector


def _nowhere(mode: str) -> TextIO:
    """A stream without an end: it lives as long as the process."""
    return cast("TextIO", open(os.devnull, mode, errors="replace"))


@dataclass(slots=True)
class Environment:
    """One run. `debug` asks for tracebacks; a `connector` replaces sockets.

    A stream that the process was started without (`>&-`) is empty, or takes everything.
    """

    stdin: TextIO = field(default_factory=lambda: sys.stdin or _nowhere("r"))
    stdout: TextIO = field(default_factory=lambda: sys.stdout or _nowhere("w"))
    stderr: TextIO = field(default_factory=lambda: sys.stderr or _nowhere("w"))
    debug: bool = False
    connector: Connector | None = None

    @property
    def on_terminal(self) -> bool:
        """Whether stdout is shown to a person."""
        return self.stdout.isatty()

    @property
    def interactive(self) -> bool:
        """Whether a person types on stdin and reads stdout (Java's `System.console()`)."""
        return self.stdin.isatty() and self.stdout.isatty()

    def abandon_stdout(self) -> None:
        """Forget a stdout that cannot be written, so that flushing at exit does not fail."""
        self.stdout = _nowhere("w")
        sys.stdout = self.stdout

    def write(self, text: str) -> None:
        """Result text, as it is."""
        self.stdout.write(text)

    def line(self, text: str = "") -> None:
        """One line of result."""
        self.stdout.write(text + "\n")

    def warn(self, text: str) -> None:
        """One line that is not result: warnings, errors, hints."""
        self.stdout.flush()
        self.stderr.write(text + "\n")
        self.stderr.flush()

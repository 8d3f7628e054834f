"""The process as a command sees it: streams, a reader or a pipe, the way to brokers.

Tests replace it whole.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from kafkapy.client.transport import Connector


@dataclass(slots=True)
class Environment:
    """One run. `debug` asks for tracebacks; a `connector` replaces sockets."""

    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    stdout: TextIO = field(default_factory=lambda: sys.stdout)
    stderr: TextIO = field(default_factory=lambda: sys.stderr)
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
        """Forget a stdout whose reader went away, so that flushing at exit does not fail."""
        self.stdout = open(os.devnull, "w")  # noqa: SIM115 (it lives as long as the process)
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

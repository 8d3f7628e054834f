"""The process of a `KafkaBroker`: `kafkapy server start` with the property file in its argument."""

from __future__ import annotations

import fcntl
import os
import signal
import sys

from kafkapy.cli.main import main as run_command


def main() -> None:
    """Run the broker until it is stopped, or standard input ends, and end this process."""
    _continue_at_eof(sys.stdin.fileno())
    sys.argv[1:] = ["server", "start", sys.argv[1], "--until-eof"]
    run_command()


def _continue_at_eof(pipe: int) -> None:
    """Send this process a SIGCONT when a pipe ends: while it is stopped, it reads nothing."""
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGCONT)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


if __name__ == "__main__":
    main()

"""The process of a `KafkaBroker`: `kafkapy server start` with the property file in its argument.

Without a parent process, nobody else deletes the temporary directory that has the file. This module
is not in `kafkapy.testing`, whose imports would delay each start.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import sys
from pathlib import Path

from kafkapy.cli.main import main as run_command


def main() -> None:
    """Run the broker until it is stopped, or standard input ends, and end this process."""
    file, pipe = sys.argv[1], sys.stdin.fileno()
    if sys.platform == "linux":  # others have no F_SETSIG
        _continue_at_eof(pipe)
    sys.argv[1:] = ["server", "start", file, "--until-eof"]
    try:
        run_command()
    finally:
        if _is_at_eof(pipe):
            shutil.rmtree(Path(file).parent, ignore_errors=True)


def _continue_at_eof(pipe: int) -> None:
    """Send this process a SIGCONT when a pipe ends: while it is stopped, it reads nothing."""
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGCONT)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _is_at_eof(pipe: int) -> bool:
    """Whether the other end of a pipe, which nobody writes to, is closed."""
    return bool(select.select([pipe], [], [], 0)[0])


if __name__ == "__main__":
    main()

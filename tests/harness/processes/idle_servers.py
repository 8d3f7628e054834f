"""Idle processes that hold a pid file as our servers do, for tests that find and end them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

IDLE = """
import signal, sys
from pathlib import Path
from kafkapy.tools.local import pid_files
if len(sys.argv) > 1:
    held = pid_files.lock(Path(sys.argv[1]))
print(flush=True)
signal.pause()
"""


class IdleServers:
    """Child processes that wait for a signal; the remaining ones are killed at the end."""

    def __init__(self) -> None:
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, pid_file: Path | None = None, *words: str) -> subprocess.Popen[bytes]:
        """Start a child that holds `pid_file`, with `words` on its command line."""
        held = [] if pid_file is None else [str(pid_file)]
        child = subprocess.Popen(
            [sys.executable, "-c", IDLE, *held, *words], stdout=subprocess.PIPE
        )
        self._children.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        return child

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for child in self._children:
            child.kill()
            child.wait()
            assert child.stdout is not None
            child.stdout.close()

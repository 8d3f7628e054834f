"""This machine: its clocks, its entropy, and a process's limit of open files.

An adapter: the production side of the ports `Clock` and `Random`, one line a verb.
"""

from __future__ import annotations

import os
import random
import resource
import time


class SystemClock:
    """`common.ports.Clock` over the machine's clocks."""

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class SystemRandom:
    """`common.ports.Random` over the machine's entropy."""

    def below(self, n: int) -> int:
        return random.randrange(n)

    def bytes(self, n: int) -> bytes:
        return os.urandom(n)


def raise_open_files_limit() -> None:
    """Allow this process as many open files as the machine does: each segment and each connection
    is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

"""Clocks, randomness, pauses that release the interpreter lock, and the limit of open files.

An adapter: the production side of the ports `Clock`, `Random` and `Pause`.
"""

from __future__ import annotations

import os
import random
import resource
import time
from typing import Final


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


class GilPause:
    """`common.ports.Pause` of a thread beside the event loop. Every 4 ms the thread releases the
    interpreter lock for longer than another thread needs to wake up.

    A waiting thread of CPython requests the lock after `sys.getswitchinterval()`, but each release
    starts that interval again. A thread that released the lock every 20 us, for a short
    decompression, took it back before the event loop was awake: the loop waited for up to 283 ms.
    """

    INTERVAL_S: Final = 0.004
    PAUSE_S: Final = 0.00005

    def __init__(self) -> None:
        self._due_s = time.monotonic() + self.INTERVAL_S

    def __call__(self) -> None:
        if time.monotonic() >= self._due_s:
            time.sleep(self.PAUSE_S)
            self._due_s = time.monotonic() + self.INTERVAL_S


def raise_open_files_limit() -> None:
    """Raise this process's limit of open files to the hard limit: each segment and each connection
    is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

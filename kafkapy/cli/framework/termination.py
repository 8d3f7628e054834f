"""Ends a long command on SIGTERM in an orderly way."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

TERMINATED: Final = 143
"""SIGTERM: 128 + 15, as in shells."""


@contextmanager
def terminable() -> Iterator[None]:
    """Make SIGTERM unwind the stack as Ctrl-C does (`timeout 5 kafkapy console-consumer ...`)."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise SystemExit(TERMINATED)

    old_handler = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old_handler)

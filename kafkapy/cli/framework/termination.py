"""Ends a long command on SIGTERM or SIGINT in an orderly way."""

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
    """Make SIGTERM unwind the stack as Ctrl-C does (`timeout 5 kafkapy console-consumer ...`).

    SIGINT gets a handler in Python, because confluent-kafka loses the exception of Python's own
    handler, which is in C: its calls then fail with a SystemError. An ignored SIGINT stays ignored.
    """

    def terminate(number: int, frame: FrameType | None) -> None:
        raise SystemExit(TERMINATED)

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    handlers = {signal.SIGTERM: terminate}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        handlers[signal.SIGINT] = interrupt
    old_handlers = {number: signal.signal(number, new) for number, new in handlers.items()}
    try:
        yield
    finally:
        for number, old in old_handlers.items():
            signal.signal(number, old)

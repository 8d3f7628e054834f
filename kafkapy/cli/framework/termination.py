"""Ending a long command in an orderly way."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

TERMINATED: Final = 143
"""SIGTERM, as shells count it: 128 + 15."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM unwinds the stack like Ctrl-C does (`timeout 5 kafkapy console-consumer ...`)."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stoppable(stop: Callable[[], None]) -> Iterator[None]:
    """The first SIGTERM or SIGINT calls `stop`, and ends the command after what it encloses.

    For a command that counts what it does: an exception could come between an event and its
    number. The second signal raises at once, as a client may wait for a server that is gone.

    Raises:
        SystemExit: SIGTERM came.
        KeyboardInterrupt: SIGINT came.
    """
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        if len(seen) > 1:
            _raise(number)
        stop()

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if seen:
        _raise(seen[0])


def _raise(number: int) -> NoReturn:
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(TERMINATED)

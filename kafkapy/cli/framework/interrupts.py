"""Delays the exceptions of signals, so that work in progress can finish."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import NoReturn, Self

from kafkapy.cli.framework.termination import TERMINATED


class FirstInterrupt:
    """A context in which the first signal only sets `seen`; the second raises.

    SIGINT raises KeyboardInterrupt, SIGTERM raises SystemExit. An exception in the middle of a
    request would leave part of the response in the connection, and the result of the request would
    be unknown.
    """

    def __init__(self, *numbers: signal.Signals) -> None:
        """`numbers` are the signals; SIGINT if none is given."""
        self._numbers = numbers or (signal.SIGINT,)
        self._first: int | None = None

    @property
    def seen(self) -> bool:
        """Whether a signal was received."""
        return self._first is not None

    def __enter__(self) -> Self:
        self._previous = {
            number: signal.signal(number, self._record_signal) for number in self._numbers
        }
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def raise_if_seen(self) -> None:
        """Raise the exception of the first signal, if a signal was received."""
        if self._first is not None:
            _raise(self._first)

    def _record_signal(self, number: int, frame: FrameType | None) -> None:
        if self.seen:
            _raise(number)
        self._first = number


@contextmanager
def stoppable() -> Iterator[FirstInterrupt]:
    """Record the first SIGTERM or SIGINT. The block then stops its work, and the signal's exception
    is raised after the block.

    Commands that count their events use it: an exception could come between an event and its count.
    The second signal raises at once, because a client may wait for a server that does not return.

    Raises:
        SystemExit: SIGTERM was received.
        KeyboardInterrupt: SIGINT was received.
    """
    with FirstInterrupt(signal.SIGTERM, signal.SIGINT) as interrupt:
        yield interrupt
    interrupt.raise_if_seen()


def _raise(number: int) -> NoReturn:
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(TERMINATED)

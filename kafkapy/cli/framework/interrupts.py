"""Signals that are noted instead of raised, so that what is under way comes to its end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import NoReturn, Self

from kafkapy.cli.framework.termination import TERMINATED


class FirstInterrupt:
    """While it is entered, the first signal only sets `seen`; the second raises.

    SIGINT raises KeyboardInterrupt, SIGTERM raises SystemExit. An exception in the middle of a
    request would leave a connection with half an answer, and nobody knowing whether the request was
    carried out.
    """

    def __init__(self, *numbers: signal.Signals) -> None:
        """Fixed: the signals; SIGINT if there are none."""
        self._numbers = numbers or (signal.SIGINT,)
        self._first: int | None = None

    @property
    def seen(self) -> bool:
        """Whether a signal came."""
        return self._first is not None

    def __enter__(self) -> Self:
        self._previous = {number: signal.signal(number, self._note) for number in self._numbers}
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
        """Raise what the first signal would have raised."""
        if self._first is not None:
            _raise(self._first)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.seen:
            _raise(number)
        self._first = number


@contextmanager
def stoppable() -> Iterator[FirstInterrupt]:
    """Note the first SIGTERM or SIGINT. The block stops its work then, and the signal is raised
    after it.

    For a command that counts its events: an exception could come between an event and its count.
    The second signal raises at once, because a client may wait for a server that is gone.

    Raises:
        SystemExit: SIGTERM came.
        KeyboardInterrupt: SIGINT came.
    """
    with FirstInterrupt(signal.SIGTERM, signal.SIGINT) as interrupt:
        yield interrupt
    interrupt.raise_if_seen()


def _raise(number: int) -> NoReturn:
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(TERMINATED)

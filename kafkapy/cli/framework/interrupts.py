"""Ctrl-C that is noted instead of raised, so that what is under way comes to its end."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Self


class FirstInterrupt:
    """While it is entered, the first SIGINT only sets `seen`; the second is a KeyboardInterrupt.

    An exception in the middle of a request would leave a connection with half an answer, and nobody
    knowing whether the request was carried out.
    """

    def __init__(self) -> None:
        self.seen = False

    def __enter__(self) -> Self:
        self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

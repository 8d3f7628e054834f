"""The requests of one ZooKeeper session: waiting, in flight, or lost with a connection.

At most `size` are in flight (`zookeeper.max.in.flight.requests`). What was lost is sent again
before anything newer, in its first order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class RequestWindow(Generic[T]):
    """A queue with a window, shut until `open`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._is_open = False
        self._waiting: deque[T] = deque()
        self._in_flight: dict[T, None] = {}
        self._lost: list[T] = []

    def push(self, request: T) -> None:
        """Send a request in its turn."""
        self._waiting.append(request)

    def next(self) -> T | None:
        """The request to send now, if there is one and room for it; from now on in flight."""
        if not self._is_open or not self._waiting or len(self._in_flight) >= self._size:
            return None
        request = self._waiting.popleft()
        self._in_flight[request] = None
        return request

    def answered(self, request: T) -> bool:
        """Take an answered request out; False if it was not in flight (an answer too many)."""
        if request not in self._in_flight:
            return False
        del self._in_flight[request]
        return True

    def lost(self, request: T) -> None:
        """A request that `answered` took out got no answer: send it again after `open`."""
        self._lost.append(request)

    def open(self, first: Sequence[T] = ()) -> None:
        """The session is connected: `first`, then what was lost, then the others."""
        self._waiting.extendleft(reversed([*first, *self._lost]))
        self._lost.clear()
        self._is_open = True

    def shut(self) -> None:
        """The connection is gone: send nothing."""
        self._is_open = False

    def drain(self) -> list[T]:
        """Take out every request, oldest first."""
        everything = [*self._in_flight, *self._lost, *self._waiting]
        self._in_flight.clear()
        self._lost.clear()
        self._waiting.clear()
        return everything

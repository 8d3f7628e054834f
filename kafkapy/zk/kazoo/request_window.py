"""The requests of one ZooKeeper session: waiting, in flight, or lost with a connection.

At most `size` are in flight (`zookeeper.max.in.flight.requests`). Lost requests are sent again
before newer ones, in their original order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class RequestWindow(Generic[T]):
    """A queue with a window, which is closed until `open`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._is_open = False
        self._waiting: deque[T] = deque()
        self._in_flight: dict[T, None] = {}
        self._lost: list[T] = []

    def push(self, request: T) -> None:
        """Add a request, which is sent in its turn."""
        self._waiting.append(request)

    def next(self) -> T | None:
        """The next request to send, if the window has room. It is in flight from now on."""
        if not self._is_open or not self._waiting or len(self._in_flight) >= self._size:
            return None
        request = self._waiting.popleft()
        self._in_flight[request] = None
        return request

    def complete(self, request: T) -> bool:
        """Remove an answered request. Returns False if it was not in flight (an unexpected
        answer).
        """
        if request not in self._in_flight:
            return False
        del self._in_flight[request]
        return True

    def requeue(self, request: T) -> None:
        """Queue a request again that `complete` removed but whose answer was lost. It is sent after
        `open`.
        """
        self._lost.append(request)

    def open(self, first: Sequence[T] = ()) -> None:
        """Open the window after connecting: send `first`, then lost requests, then the others."""
        self._waiting.extendleft(reversed([*first, *self._lost]))
        self._lost.clear()
        self._is_open = True

    def shut(self) -> None:
        """Close the window, because the connection was lost."""
        self._is_open = False

    def drain(self) -> list[T]:
        """Remove every request, oldest first."""
        everything = [*self._in_flight, *self._lost, *self._waiting]
        self._in_flight.clear()
        self._lost.clear()
        self._waiting.clear()
        return everything

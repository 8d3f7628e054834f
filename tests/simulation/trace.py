"""Trace of a simulation: a running hash of all events, and the last readable lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import Final
from zlib import crc32

_TAIL_LINES: Final = 40


class Trace:
    """A trace. `now_us()` gives timestamps; `echo`, if given, receives each readable line."""

    def __init__(
        self, now_us: Callable[[], int], echo: Callable[[str], None] | None = None
    ) -> None:
        self._now_us = now_us
        self._echo = echo
        self._hash = blake2b(digest_size=12)
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)

    def bytes_arrived(self, host: str, data: bytes) -> None:
        """Record bytes of a connection that arrived at a host."""
        self._hash.update(b"%d %s %d" % (self._now_us(), host.encode(), crc32(data)))

    def note(self, source: str, message: str) -> None:
        """Record a line: a fault, a change of state, a response."""
        line = f"{self._now_us() / 1e6:10.6f} {source:<10} {message}"
        self._hash.update(line.encode())
        self.tail.append(line)
        if self._echo is not None:
            self._echo(line)

    def digest(self) -> str:
        return self._hash.hexdigest()

"""Fake time and fake randomness: the only doubles of `kafkapy.common.ports`."""

from __future__ import annotations

import random

NOW_MS = 1_700_000_000_000


class ManualClock:
    """A clock that stands still until a test moves `now_ms`, its monotonic time.

    Wall time is `wall_ahead_ms` later: not 0 in tests that must detect that the two are mixed up.
    """

    def __init__(self, now_ms: int = NOW_MS, wall_ahead_ms: int = 0) -> None:
        self.now_ms = now_ms
        self._wall_ahead_ms = wall_ahead_ms

    def time_ms(self) -> int:
        return self._wall_ahead_ms + self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


class SeededRandom:
    """Random values that a seed determines."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def bytes(self, n: int) -> bytes:
        return self._random.randbytes(n)


class CountingRandom:
    """Not random at all: `first`, `first` + 1 ... (modulo n), and ids that count."""

    def __init__(self, first: int = 0) -> None:
        self._next = first

    def _count(self) -> int:
        self._next += 1
        return self._next - 1

    def below(self, n: int) -> int:
        return self._count() % n

    def bytes(self, n: int) -> bytes:
        return self._count().to_bytes(n, "big")

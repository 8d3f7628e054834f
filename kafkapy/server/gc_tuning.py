"""Garbage collector and allocator settings for long-running processes with many objects.

CPython's full collections look at every container. With 10,000 partitions, one takes 130 ms, in
which no request is served. Responses that describe all partitions trigger one after another.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final

_OLDEST_GENERATION: Final = 2
_FULL_INTERVAL_S: Final = 3600.0
_YOUNG_THRESHOLD: Final = 5000
"""The number of allocations minus deallocations that starts a collection of the youngest
generation. A few waiting requests reach CPython's default of 700. With it, collections took 2 % of
a busy leader's processor time, and found hardly any cycles."""


def freeze_survivors(now_s: Callable[[], float] = time.monotonic) -> None:
    """Freeze objects that survive a full collection; once an hour, a full collection looks at all
    objects.

    Reference counting still frees frozen objects. Only a cycle that becomes garbage after the
    freeze waits for the hourly collection. The long-lived objects here (partitions, logs,
    connections, groups) are dismantled when they end.
    """
    gc.set_threshold(_YOUNG_THRESHOLD)
    due_s = now_s() + _FULL_INTERVAL_S

    def on_collection(phase: str, info: dict[str, int]) -> None:
        nonlocal due_s
        if info["generation"] != _OLDEST_GENERATION:
            return
        if phase == "stop":
            gc.freeze()
        elif now_s() >= due_s:
            due_s = now_s() + _FULL_INTERVAL_S
            gc.unfreeze()

    gc.callbacks.append(on_collection)


def return_free_memory() -> None:
    """Return freed pages to the system, where the C library can (glibc). Otherwise it keeps them,
    and a broker's memory stays as large as its largest request made it."""
    import ctypes  # imported here: it takes 2 ms, and the start-up does not need it

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

"""Memory of a process that holds much for long: no pause of the garbage collector that grows with
it, and no pages kept that nobody uses.

CPython's full collections look at every container there is, 130 ms of them with 10,000 partitions,
in which nobody is served; and the answers that tell of all partitions bring one on after another.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final

_FULL: Final = 2
_WHOLE_EVERY_S: Final = 3600.0
_YOUNG_OBJECTS: Final = 5000
"""So many more made than freed bring on a look at the youngest. CPython's 700 are a few requests
that wait: the looks took 2 % of a busy leader's processor time, and hardly found a cycle."""


def freeze_survivors(now_s: Callable[[], float] = time.monotonic) -> None:
    """From now on full collections leave out what an earlier one has seen to be in use; one an
    hour does not.

    Reference counts free it as ever. Only a cycle that becomes garbage after that waits for the
    hour: what lives long here (partitions, logs, connections, groups) is taken apart when it ends.
    """
    gc.set_threshold(_YOUNG_OBJECTS)
    due_s = now_s() + _WHOLE_EVERY_S

    def collecting(phase: str, info: dict[str, int]) -> None:
        nonlocal due_s
        if info["generation"] != _FULL:
            return
        if phase == "stop":
            gc.freeze()
        elif now_s() >= due_s:
            due_s = now_s() + _WHOLE_EVERY_S
            gc.unfreeze()

    gc.callbacks.append(collecting)


def return_free_memory() -> None:
    """Give freed pages back to the system, where the C library can (glibc). It keeps them
    otherwise, and a broker stays as large as its largest request made it."""
    import ctypes  # 2 ms of the start-up, which needs none of it

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

"""Waiting for a condition: polling with a time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LIMIT_S = 60.0
_LOOK_AGAIN_S = 0.05


def wait_until(
    holds: Callable[[], bool],
    what: str,
    limit_s: float = LIMIT_S,
    look_again_s: float = _LOOK_AGAIN_S,
) -> None:
    """Return when `holds()` is true; fail with `what` in the message after the limit."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}"
        time.sleep(look_again_s)


def join(thread: threading.Thread, limit_s: float = LIMIT_S) -> None:
    """Wait for the end of a thread; fail when the limit has passed."""
    thread.join(limit_s)
    assert not thread.is_alive(), f"not within {limit_s:g} s: the end of thread {thread.name}"

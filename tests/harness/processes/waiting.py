"""Waiting for a condition: polling with a time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LIMIT_S = 60.0
_POLL_INTERVAL_S = 0.05


def wait_until(
    condition: Callable[[], bool],
    description: str,
    limit_s: float = LIMIT_S,
    poll_interval_s: float = _POLL_INTERVAL_S,
) -> None:
    """Return when `condition()` is true; fail with `description` in the message after the limit."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {description}"
        time.sleep(poll_interval_s)


def join(thread: threading.Thread, limit_s: float = LIMIT_S) -> None:
    """Wait for the end of a thread; fail when the limit has passed."""
    thread.join(limit_s)
    assert not thread.is_alive(), f"not within {limit_s:g} s: the end of thread {thread.name}"

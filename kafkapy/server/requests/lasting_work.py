"""Work that a broker needs for as long as it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

FAULT_BACKOFF_S: Final = 1.0


async def keep_running(
    what: str,
    work: Callable[[], Awaitable[None]],
    log: logging.Logger,
    on_fault: Callable[[], None] = lambda: None,
) -> None:
    """Run `work`, until it returns or is cancelled. After a fault that nobody expected, which is
    logged, it begins anew: `on_fault` prepares that.

    Kafka's `ShutdownableThread` ends. Without it replicas stay behind, or changes are not applied,
    until the broker is restarted.
    """
    while True:
        try:
            await work()
            return
        except Exception:
            log.exception("%s failed, and begins anew in %g s", what, FAULT_BACKOFF_S)
            on_fault()
            await asyncio.sleep(FAULT_BACKOFF_S)

"""Restarts long-running tasks after unexpected exceptions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

FAULT_BACKOFF_S: Final = 1.0


async def keep_running(
    name: str,
    work: Callable[[], Awaitable[None]],
    log: logging.Logger,
    on_fault: Callable[[], None] = lambda: None,
) -> None:
    """Run `work` until it returns or is cancelled. An unexpected exception is logged; then
    `on_fault` is called, and `work` is called again after a back-off.

    Kafka's `ShutdownableThread` ends at such an exception. Without a fetcher, for example, replicas
    would lag until the broker is restarted.
    """
    while True:
        try:
            await work()
            return
        except Exception:
            log.exception("%s failed, and begins anew in %g s", name, FAULT_BACKOFF_S)
            on_fault()
            await asyncio.sleep(FAULT_BACKOFF_S)

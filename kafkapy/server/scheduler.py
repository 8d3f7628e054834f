"""Periodic tasks: retention, checkpoints, flushes, idle connections (`KafkaScheduler`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from kafkapy.common.errors import LogDirFailure
from kafkapy.storage.disk_errors import StorageShortage

logger = logging.getLogger("kafka.utils.KafkaScheduler")


class Scheduler:
    """Runs periodic steps. A step that fails is logged, and runs again after its period."""

    def __init__(self, on_log_dir_failure: Callable[[LogDirFailure], None]) -> None:
        self._on_log_dir_failure = on_log_dir_failure
        self._tasks: list[asyncio.Task[None]] = []

    def every(
        self,
        name: str,
        period_ms: int,
        step: Callable[[], Awaitable[Any] | None],
        delay_ms: int | None = None,
    ) -> None:
        """Run `step` every `period_ms`, first after `delay_ms` (default: one period); only once
        if the period is 0."""
        first_ms = period_ms if delay_ms is None else delay_ms
        work = self._repeat(name, period_ms / 1000, step, first_ms / 1000)
        self._tasks.append(asyncio.get_running_loop().create_task(work, name=name))

    async def _repeat(
        self,
        name: str,
        period_s: float,
        step: Callable[[], Awaitable[Any] | None],
        first_s: float,
    ) -> None:
        await asyncio.sleep(first_s)
        while True:
            try:
                outcome = step()
                if outcome is not None:
                    await outcome
            except LogDirFailure as failure:
                self._on_log_dir_failure(failure)
            except StorageShortage as shortage:
                logger.warning("%s is put off: %s", name, shortage)
            except Exception:
                logger.exception("Uncaught exception in scheduled task '%s'", name)
            if not period_s:
                return
            await asyncio.sleep(period_s)

    async def stop(self) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

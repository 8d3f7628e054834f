"""Coroutines that a broker runs in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger("kafka.server.KafkaApis")


class BackgroundTasks:
    """Tasks that are not awaited. References to them are kept until they end."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}  # in the order of their start
        self._is_ended = False

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in the background. A failure is logged. After `cancel`, nothing is run: a
        broker that stops must not join the cluster again when its session expires."""
        if self._is_ended:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            logger.error("A background task failed", exc_info=task.exception())

    async def cancel(self) -> None:
        """Cancel the running tasks, and wait until they have ended."""
        self._is_ended = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""Follows change notifications: processes them whenever a watch fires
(`kafka.common.ZkNodeChangeNotificationListener`).

Failed processing is retried. Kafka logs the failure and waits for the next notification, but its
ZooKeeper client has already retried for as long as the connection was lost. Without a retry the old
state would stay in force: ACL entries that allow operations that are now denied, or old passwords.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from kafkapy.common.errors import KafkapyError
from kafkapy.common.lasting_work import keep_running
from kafkapy.zk.zookeeper import WatchEvent

_RETRY_BACKOFF_S: Final = 1.0


class ChangeNotificationListener:
    """A task that runs from `start` to `stop`. It calls `process` once after any number of
    notifications. `process` must set `on_watch` as the watch. `data_name` is the name of the
    followed data in the log.
    """

    def __init__(
        self, data_name: str, process: Callable[[], Awaitable[None]], log: logging.Logger
    ) -> None:
        self._data_name = data_name
        self._process = process
        self._log = log
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task. The caller must set the first watch."""
        name = f"Following {self._data_name}"
        work = keep_running(name, self._run, self._log, self._changed.set)
        self._task = asyncio.get_running_loop().create_task(work)

    async def stop(self) -> None:
        """Stop the task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def on_watch(self, _: WatchEvent) -> None:
        """Wake the task, because notifications may have arrived."""
        self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._process()
            except KafkapyError as error:
                self._log.error("Cannot follow %s, trying again: %s", self._data_name, error)
                await asyncio.sleep(_RETRY_BACKOFF_S)
                self._changed.set()

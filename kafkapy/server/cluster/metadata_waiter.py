"""Waiting until the metadata of the cluster meets a condition."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkapy.metadata.cache import MetadataCache
    from kafkapy.metadata.image import MetadataImage


class MetadataWaiter:
    """Waits for metadata. `is_complete` becomes true when the broker has the cluster's metadata.

    `on_change` is called at each change, before the waiters.
    """

    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata
        self.is_complete = False
        self.on_change: Callable[[], None] = lambda: None
        self._waiters: dict[asyncio.Future[None], Callable[[MetadataImage], bool]] = {}

    def mark_complete(self) -> None:
        """Mark the metadata as the cluster's. Before this, it is that of a broker that just
        started."""
        self.is_complete = True
        self.wake_waiters()

    def wake_waiters(self) -> None:
        """Wake the waiters whose condition the new image meets."""
        self.on_change()
        image = self._metadata.image
        for future, condition in list(self._waiters.items()):
            if not future.done() and condition(image):
                future.set_result(None)

    def countdown(self, timeout_ms: int) -> Callable[[], int]:
        """A function that returns the rest, in ms, of a timeout that begins now: for several
        waits."""
        now_s = asyncio.get_running_loop().time
        end_s = now_s() + timeout_ms / 1000
        return lambda: math.ceil((end_s - now_s()) * 1000)

    async def wait_until(self, condition: Callable[[MetadataImage], bool], timeout_ms: int) -> bool:
        """Wait until the metadata meets a condition; False if `timeout_ms` passes first."""
        if condition(self._metadata.image):
            return True
        if timeout_ms <= 0:
            return False
        future = asyncio.get_running_loop().create_future()
        self._waiters[future] = condition
        try:
            await asyncio.wait_for(future, timeout_ms / 1000)
        except TimeoutError:
            return False
        finally:
            del self._waiters[future]
        return True

    async def wait_until_topics_ready(
        self, names: list[str], timeout_ms: int, partitions: int = 1
    ) -> bool:
        """Wait until each topic has at least `partitions` partitions and all have leaders."""

        def ready(image: MetadataImage) -> bool:
            topics = [image.topics.get(name) for name in names]
            return all(
                topic is not None
                and len(topic.partitions) >= partitions
                and all(p.leader >= 0 for p in topic.partitions.values())
                for topic in topics
            )

        return await self.wait_until(ready, timeout_ms)

    async def wait_until_topics_removed(self, names: list[str], timeout_ms: int) -> bool:
        """Wait until the metadata has none of these topics."""
        return await self.wait_until(
            lambda image: not any(name in image.topics for name in names), timeout_ms
        )

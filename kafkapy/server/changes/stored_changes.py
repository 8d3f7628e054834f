"""Keeps a broker's copy of stored values up to date with ZooKeeper: ACLs, delegation tokens.

A notification names one value, which is read when the notification is processed. Every broker
deletes the notifications older than 15 minutes that it sees
(`kafka.common.ZkNodeChangeNotificationListener`).
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from kafkapy.common.ports import Clock
from kafkapy.server.changes.change_follower import ChangeFollower
from kafkapy.zk.stores.znodes import ZnodeError
from kafkapy.zk.zookeeper import Watch

Change = TypeVar("Change")
Key = TypeVar("Key")
Key_co = TypeVar("Key_co", covariant=True)


class ChangeStore(Protocol[Change, Key_co]):
    """A store of values, and its change notifications."""

    async def create_paths(self) -> None:
        """Create the nodes that the store needs."""

    async def changes(self, watch: Watch | None = None) -> Sequence[Change]:
        """All notifications, in their order."""
        ...

    async def changed(self, change: Change, /) -> Key_co | None:
        """The key that a notification names; None if it was deleted or names none. Raises
        ZnodeError.
        """
        ...

    async def purge(self, changes: Iterable[Change], /, now_ms: int) -> None:
        """Delete the old ones of these notifications."""


class Followed(Protocol):
    """A part of ZooKeeper's data that a broker follows from its start to its stop."""

    async def reload(self) -> None:
        """Read everything again, because changes may have been missed without a session."""

    async def stop(self) -> None:
        """Stop following."""


class StoredChanges(ABC, Generic[Change, Key]):
    """Reads all stored values at `start`, then each changed one. `what` is the name of the values
    in the log.
    """

    def __init__(
        self, store: ChangeStore[Change, Key], clock: Clock, what: str, log: logging.Logger
    ) -> None:
        self._stored = store
        self._clock = clock
        self._what = what
        self._log = log
        self._seen: dict[str, int] = {}  # the last sequence number by folder
        self._applying = asyncio.Lock()
        self._follower = ChangeFollower(f"changes of {what}", self.process, log)

    @abstractmethod
    async def _read_all(self) -> None:
        """Read all stored values."""

    @abstractmethod
    async def _read(self, key: Key) -> None:
        """Read one stored value. Raises ZnodeError."""

    @abstractmethod
    def _place(self, change: Change) -> tuple[str, int]:
        """The folder of a notification, and its number there."""

    async def start(self) -> None:
        """Load everything, then follow the changes."""
        await self._stored.create_paths()
        await self.reload()
        self._follower.start()

    async def stop(self) -> None:
        """Stop following."""
        await self._follower.stop()

    async def reload(self) -> None:
        """Read all stored values, at the start and after a lost session, when changes may have been
        missed.
        """
        async with self._applying:
            # Set the watch first, so that a change during the read causes another read.
            changes = await self._stored.changes(self._follower.on_watch)
            await self._read_all()
            self._seen.update(map(self._place, changes))

    async def refresh(self, key: Key) -> None:
        """Read one stored value again. Raises ZnodeError.

        Reads run one after the other, so that the result of the latest read stays.
        """
        async with self._applying:
            await self._read(key)

    async def process(self) -> None:
        """Apply the changes newer than the last ones seen, and set the watch for the next."""
        changes = await self._stored.changes(self._follower.on_watch)
        for change in changes:
            folder, sequence = self._place(change)
            if sequence <= self._seen.get(folder, -1):
                continue
            try:
                key = await self._stored.changed(change)
                if key is not None:
                    await self.refresh(key)
            except ZnodeError as error:
                self._log.error("Ignoring a change of %s: %s", self._what, error)
            self._seen[folder] = sequence
        await self._stored.purge(changes, self._clock.time_ms())

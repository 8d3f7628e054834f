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
from kafkapy.server.changes.change_follower import ChangeNotificationListener
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

    async def changed_key(self, change: Change, /) -> Key_co | None:
        """The key that a notification names; None if it was deleted or names none. Raises
        ZnodeError.
        """
        ...

    async def purge(self, changes: Iterable[Change], /, now_ms: int) -> None:
        """Delete the old ones of these notifications."""


class ZooKeeperWatcher(Protocol):
    """A part of ZooKeeper's data that a broker follows from its start to its stop."""

    async def reload(self) -> None:
        """Read everything again, because changes may have been missed without a session."""

    async def stop(self) -> None:
        """Stop following."""


class StoredChangeListener(ABC, Generic[Change, Key]):
    """Reads all stored values at `start`, then each changed one. `data_name` is the name of the
    values in the log.
    """

    def __init__(
        self, store: ChangeStore[Change, Key], clock: Clock, data_name: str, log: logging.Logger
    ) -> None:
        self._change_store = store
        self._clock = clock
        self._data_name = data_name
        self._log = log
        self._last_sequences: dict[str, int] = {}  # the last sequence number by folder
        self._apply_lock = asyncio.Lock()
        self._listener = ChangeNotificationListener(f"changes of {data_name}", self.process, log)

    @abstractmethod
    async def _read_all(self) -> None:
        """Read all stored values."""

    @abstractmethod
    async def _read(self, key: Key) -> None:
        """Read one stored value. Raises ZnodeError."""

    @abstractmethod
    def _position(self, change: Change) -> tuple[str, int]:
        """The folder of a notification, and its number there."""

    async def start(self) -> None:
        """Load everything, then follow the changes."""
        await self._change_store.create_paths()
        await self.reload()
        self._listener.start()

    async def stop(self) -> None:
        """Stop following."""
        await self._listener.stop()

    async def reload(self) -> None:
        """Read all stored values, at the start and after a lost session, when changes may have been
        missed.
        """
        async with self._apply_lock:
            # Set the watch first, so that a change during the read causes another read.
            changes = await self._change_store.changes(self._listener.on_watch)
            await self._read_all()
            self._last_sequences.update(map(self._position, changes))

    async def refresh(self, key: Key) -> None:
        """Read one stored value again. Raises ZnodeError.

        Reads run one after the other, so that the result of the latest read stays.
        """
        async with self._apply_lock:
            await self._read(key)

    async def process(self) -> None:
        """Apply the changes newer than the last ones seen, and set the watch for the next."""
        changes = await self._change_store.changes(self._listener.on_watch)
        for change in changes:
            folder, sequence = self._position(change)
            if sequence <= self._last_sequences.get(folder, -1):
                continue
            try:
                key = await self._change_store.changed_key(change)
                if key is not None:
                    await self.refresh(key)
            except ZnodeError as error:
                self._log.error("Ignoring a change of %s: %s", self._data_name, error)
            self._last_sequences[folder] = sequence
        await self._change_store.purge(changes, self._clock.time_ms())

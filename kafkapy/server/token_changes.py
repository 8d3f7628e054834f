"""Follows `/delegation_token/token_changes`: this broker knows the tokens of ZooKeeper
(`DelegationTokenManagerZk.TokenChangedNotificationHandler`).

A notification is the id of a token, which is read when it is processed. Notifications older than
15 minutes are deleted by whoever sees them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from kafkapy.common.ports import Clock
from kafkapy.server.change_follower import ChangeFollower
from kafkapy.server.delegation_tokens import DelegationTokens
from kafkapy.zk.store import ZkStore
from kafkapy.zk.znodes import ZnodeError

_IGNORED: Final = "Ignoring a delegation token: %s"

_log = logging.getLogger("kafka.server.DelegationTokenManagerZk")


class TokenChangeListener:
    """Gives `tokens` every token at `start`, then each change."""

    def __init__(self, store: ZkStore, clock: Clock, tokens: DelegationTokens) -> None:
        self._store = store.tokens
        self._clock = clock
        self._tokens = tokens
        self._seen = -1  # the last sequence number
        self._applying = asyncio.Lock()
        self._follower = ChangeFollower("changes of delegation tokens", self.process, _log)

    async def start(self) -> None:
        """Load everything, then follow the changes."""
        await self._store.create_paths()
        await self.reload()
        self._follower.start()

    async def stop(self) -> None:
        """End following."""
        await self._follower.stop()

    async def reload(self) -> None:
        """Have what is stored now, whatever was missed: at the start and after a lost session."""
        async with self._applying:
            # The watch first: a change made while the tokens are read is then read once more.
            changes = await self._store.changes(self._follower.on_watch)
            stored = await self._store.get_all()
            for token_id in {token.token_id for token in self._tokens.all()} - set(stored):
                self._tokens.remove(token_id)
            for found in stored.values():
                if isinstance(found, ZnodeError):
                    _log.error(_IGNORED, found)
                else:
                    self._tokens.put(found)
            self._seen = max(changes, default=self._seen)

    async def refresh(self, token_id: str) -> None:
        """Have one token as it is stored now.

        In turn with the others: of two reads the later one must be what stays.
        """
        async with self._applying:
            await self._read(token_id)

    async def _read(self, token_id: str) -> None:
        try:
            found = await self._store.get(token_id)
        except ZnodeError as error:
            _log.error(_IGNORED, error)
            return
        if found is None:
            self._tokens.remove(token_id)
        else:
            self._tokens.put(found[0])

    async def process(self) -> None:
        """Apply the changes newer than the last one seen, and wait for the next."""
        changes = await self._store.changes(self._follower.on_watch)
        for sequence in changes:
            if sequence > self._seen:
                token_id = await self._store.changed(sequence)
                if token_id:
                    await self.refresh(token_id)
                self._seen = sequence
        await self._store.purge(changes, self._clock.time_ms())

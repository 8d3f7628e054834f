"""Updates this broker's delegation tokens from ZooKeeper: follows `/delegation_token/token_changes`
(`DelegationTokenManagerZk.TokenChangedNotificationHandler`).
"""

from __future__ import annotations

import logging
from typing import Final

from kafkapy.common.ports import Clock
from kafkapy.server.changes.stored_changes import StoredChangeListener
from kafkapy.server.security.delegation_tokens import DelegationTokens
from kafkapy.zk.stores import paths
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.znodes import ZnodeError

_IGNORED_MESSAGE: Final = "Ignoring a delegation token: %s"

_log = logging.getLogger("kafka.server.DelegationTokenManagerZk")


class TokenChangeListener(StoredChangeListener[int, str]):
    """Updates `tokens` with every token at `start`, then with each change."""

    def __init__(self, store: ZkStore, clock: Clock, tokens: DelegationTokens) -> None:
        super().__init__(store.tokens, clock, "delegation tokens", _log)
        self._store = store.tokens
        self._tokens = tokens

    async def _read_all(self) -> None:
        stored = await self._store.get_all()
        for token_id in {token.token_id for token in self._tokens.all()} - set(stored):
            self._tokens.remove(token_id)
        for found in stored.values():
            if isinstance(found, ZnodeError):
                _log.error(_IGNORED_MESSAGE, found)
            else:
                self._tokens.put(found)

    async def _read(self, key: str) -> None:
        try:
            found = await self._store.get(key)
        except ZnodeError as error:
            _log.error(_IGNORED_MESSAGE, error)
            return
        if found is None:
            self._tokens.remove(key)
        else:
            self._tokens.put(found[0])

    def _position(self, change: int) -> tuple[str, int]:
        return paths.TOKEN_CHANGES, change

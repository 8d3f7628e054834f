"""Creates, renews and expires delegation tokens.

The checks and their order are those of `DelegationTokenManagerZk`. Any broker can change tokens;
the others follow the notification.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Clock, Random
from kafkapy.common.uuid import Uuid
from kafkapy.security.delegation_tokens import TokenInformation
from kafkapy.server.changes.token_changes import TokenChangeListener
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.security.delegation_tokens import DelegationTokens
from kafkapy.zk.stores.store import ZkStore

logger = logging.getLogger("kafka.server.DelegationTokenManagerZk")


class TokenTimes(NamedTuple):
    """`delegation.token.max.lifetime.ms` and `delegation.token.expiry.time.ms`."""

    max_lifetime_ms: int
    expiry_time_ms: int

    @classmethod
    def from_config(cls, config: KafkaConfig) -> TokenTimes:
        """The times of a broker."""
        names = ("delegation.token.max.lifetime.ms", "delegation.token.expiry.time.ms")
        return cls(*map(config.get_int, names))


class TokenAdmin:
    """Changes the tokens of the cluster in the store. `times` cannot change at run time."""

    def __init__(
        self,
        store: ZkStore,
        tokens: DelegationTokens,
        changes: TokenChangeListener,
        clock: Clock,
        random: Random,
        times: TokenTimes,
    ) -> None:
        self._store = store.tokens
        self._tokens = tokens
        self._changes = changes
        self._clock = clock
        self._random = random
        self._times = times
        self._change_lock = asyncio.Lock()

    async def create(
        self, owner: str, requester: str, renewers: tuple[str, ...], max_lifetime_ms: int
    ) -> TokenInformation:
        """Create a token. With a `max_lifetime_ms` of 0 or less, it has the longest lifetime of
        this broker's configuration.
        """
        limit_ms, expiry_time_ms = self._times
        lifetime_ms = limit_ms if max_lifetime_ms <= 0 else min(max_lifetime_ms, limit_ms)
        now_ms = self._clock.time_ms()
        token = TokenInformation(
            str(Uuid.random(self._random)),
            owner,
            requester,
            renewers,
            now_ms,
            now_ms + lifetime_ms,
            now_ms + min(lifetime_ms, expiry_time_ms),
        )
        await self._store.create(token)
        # This broker applies the token before the response; the others are notified.
        await self._changes.refresh(token.token_id)
        await self._store.notify(token.token_id)
        logger.info("Created a delegation token: %s for owner: %s", token.token_id, owner)
        return token

    async def renew(self, principal: str, hmac: bytes, period_ms: int) -> int:
        """Renew a token for `period_ms`, or for the configured time if that is negative, but not
        beyond its maximum lifetime. Returns the expiry time.

        Raises:
            ApiError: DELEGATION_TOKEN_NOT_FOUND, _OWNER_MISMATCH or _EXPIRED.
        """
        period_ms = self._times.expiry_time_ms if period_ms < 0 else period_ms
        return await self._change(principal, hmac, lambda now_ms: now_ms + period_ms)

    async def expire(self, principal: str, hmac: bytes, period_ms: int) -> int:
        """Expire a token in `period_ms`, or remove it if that is negative; returns the expiry time.

        Raises:
            ApiError: as `renew`, but an expired token can still be removed.
        """
        if period_ms >= 0:
            return await self._change(principal, hmac, lambda now_ms: now_ms + period_ms)
        async with self._change_lock:
            while True:
                token, version = await self._find_token(principal, hmac)
                if await self._store.delete(token.token_id, version):
                    await self._changes.refresh(token.token_id)
                    logger.info(
                        "Token expired for token: %s for owner: %s", token.token_id, token.owner
                    )
                    return self._clock.time_ms()

    async def delete_expired(self) -> None:
        """Remove every token that has expired."""
        now_ms = self._clock.time_ms()
        for known in [token for token in self._tokens.all() if token.is_expired(now_ms)]:
            async with self._change_lock:
                # Another broker may have renewed it just now.
                found = await self._store.get(known.token_id)
                if found is None or not found[0].is_expired(now_ms):
                    await self._changes.refresh(known.token_id)
                elif await self._store.delete(known.token_id, found[1]):
                    await self._changes.refresh(known.token_id)
                    logger.info(
                        "Delegation token expired for token: %s for owner: %s",
                        known.token_id,
                        known.owner,
                    )

    async def _change(self, principal: str, hmac: bytes, expiry_of: Callable[[int], int]) -> int:
        async with self._change_lock:
            while True:
                token, version = await self._find_token(principal, hmac)
                now_ms = self._clock.time_ms()
                if token.is_expired(now_ms):
                    raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
                changed = token._replace(expiry_ms=min(token.max_ms, expiry_of(now_ms)))
                if await self._store.replace(changed, version):
                    await self._changes.refresh(token.token_id)
                    logger.info(
                        "Delegation token of %s: %s expires at %d ms now",
                        *(token.owner, token.token_id, changed.expiry_ms),
                    )
                    return changed.expiry_ms

    async def _find_token(self, principal: str, hmac: bytes) -> tuple[TokenInformation, int]:
        """The stored token of an HMAC and its version, if `principal` may change the token."""
        token_id = self._tokens.id_of(hmac)
        found = None if token_id is None else await self._store.get(token_id)
        if found is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        if not found[0].may_be_renewed_by(principal):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        return found

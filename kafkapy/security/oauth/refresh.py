"""Schedules the refresh of keys and tokens, without a clock: retries, the refresh of a token before
it expires (`ExpiringCredentialRefreshingLogin`), and the refresh of keys after an unknown key ID.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkapy.security.oauth.tokens import BearerToken

KEY_ID_CHARS_MAX: Final = 64
KEY_IDS_MAX: Final = 16
KEY_ID_PAUSE_MS: Final = 60_000


def retry_waits_ms(first_ms: int, total_ms: int) -> Iterator[int]:
    """The waits after failed attempts: each is twice as long as the one before, `total_ms`
    together.
    """
    wait_ms, remaining_ms = first_ms, total_ms
    while remaining_ms > 0 and wait_ms > 0:
        yield min(wait_ms, remaining_ms)
        remaining_ms -= wait_ms
        wait_ms *= 2


class RefreshWindow(NamedTuple):
    """`sasl.login.refresh.*`: the part of a token's lifetime after which it is refreshed, and the
    seconds after its fetch and before its expiry in which it is not refreshed.
    """

    factor: float = 0.8
    jitter: float = 0.05
    min_period_s: int = 60
    buffer_s: int = 300

    def delay_ms(self, token: BearerToken, now_ms: int, chance: float) -> int:
        """The ms until a new token is refreshed; `chance`, in [0, 1), is the part of the jitter."""
        part = self.factor + self.jitter * chance
        remaining_ms = token.expires_ms - now_ms
        if remaining_ms <= 0:
            return self.min_period_s * 1000
        start_ms = now_ms if token.starts_ms is None else min(token.starts_ms, now_ms)
        if (self.min_period_s + self.buffer_s) * 1000 > remaining_ms:
            return int(remaining_ms * part)  # too short for both periods: Kafka ignores them
        refresh_ms = start_ms + int((token.expires_ms - start_ms) * part)
        refresh_ms = min(refresh_ms, token.expires_ms - self.buffer_s * 1000)
        return max(refresh_ms - now_ms, self.min_period_s * 1000)


class UnknownKeyIds:
    """Limits fetches of keys for unknown key IDs: one a minute for each of the last few IDs, so
    that bad tokens do not overload the issuer.
    """

    def __init__(self) -> None:
        self._next_fetch_ms: OrderedDict[str, int] = OrderedDict()

    def may_refresh(self, key_id: str, now_ms: int) -> bool:
        """Whether to fetch the keys now, for an unknown ID."""
        if len(key_id) > KEY_ID_CHARS_MAX or self._next_fetch_ms.get(key_id, 0) > now_ms:
            return False
        self._next_fetch_ms[key_id] = now_ms + KEY_ID_PAUSE_MS
        self._next_fetch_ms.move_to_end(key_id)
        if len(self._next_fetch_ms) > KEY_IDS_MAX:
            self._next_fetch_ms.popitem(last=False)
        return True

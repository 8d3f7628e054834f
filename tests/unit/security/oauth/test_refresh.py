"""When keys and tokens are fetched again."""

from __future__ import annotations

import pytest

from kafkapy.security.oauth.refresh import (
    KEY_ID_PAUSE_MS,
    KEY_IDS_MAX,
    RefreshWindow,
    UnknownKeyIds,
    retry_waits_ms,
)
from kafkapy.security.oauth.tokens import BearerToken

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("first_ms", "total_ms", "waits"),
    [(100, 1000, [100, 200, 400, 300]), (100, 0, []), (0, 1000, []), (500, 100, [100])],
)
def test_attempts_come_further_and_further_apart(
    first_ms: int, total_ms: int, waits: list[int]
) -> None:
    assert list(retry_waits_ms(first_ms, total_ms)) == waits


@pytest.mark.parametrize(
    ("starts_ms", "expires_ms", "chance", "delay_ms"),
    [
        (NOW_MS, NOW_MS + HOUR_MS, 0.0, HOUR_MS * 0.8),
        (NOW_MS, NOW_MS + HOUR_MS, 0.5, HOUR_MS * 0.825),
        (None, NOW_MS + HOUR_MS, 0.0, HOUR_MS * 0.8),
        # Half of it is over.
        (NOW_MS - HOUR_MS, NOW_MS + HOUR_MS, 0.0, HOUR_MS * 0.6),
        # The last five minutes are not used up.
        (NOW_MS, NOW_MS + 1_000_000, 0.0, 700_000),
        # The first minute is.
        (NOW_MS - 9 * HOUR_MS, NOW_MS + 400_000, 0.0, 60_000),
        # No room for both.
        (NOW_MS, NOW_MS + 100_000, 0.0, 80_000),
        (NOW_MS, NOW_MS - 1, 0.0, 60_000),
    ],
)
def test_a_token_is_refreshed_before_it_ends(
    starts_ms: int | None, expires_ms: int, chance: float, delay_ms: float
) -> None:
    token = BearerToken("v", "alice", expires_ms, starts_ms)
    assert RefreshWindow().delay_ms(token, NOW_MS, chance) == delay_ms


def test_an_unknown_key_is_looked_for_once_a_minute() -> None:
    ids = UnknownKeyIds()
    assert ids.may_refresh("a", NOW_MS)
    assert not ids.may_refresh("a", NOW_MS + KEY_ID_PAUSE_MS - 1)
    assert ids.may_refresh("b", NOW_MS)
    assert ids.may_refresh("a", NOW_MS + KEY_ID_PAUSE_MS)
    assert not ids.may_refresh("x" * 65, NOW_MS)


def test_few_unknown_keys_are_remembered() -> None:
    ids = UnknownKeyIds()
    for number in range(KEY_IDS_MAX + 1):
        assert ids.may_refresh(str(number), NOW_MS)
    assert ids.may_refresh("0", NOW_MS)  # forgotten
    assert not ids.may_refresh(str(KEY_IDS_MAX), NOW_MS)

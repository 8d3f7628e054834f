"""Tokens made, renewed and ended: times, who may, and two brokers at once."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.security.delegation_tokens import TokenInformation
from kafkapy.server.admin.token_admin import TokenAdmin, TokenTimes
from kafkapy.server.changes.token_changes import TokenChangeListener
from kafkapy.server.security.delegation_tokens import DelegationTokens
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores.ports import NOW_MS, ManualClock, SeededRandom
from tests.harness.cores.znodes import AnswerLosingZooKeeper, run, server
from tests.harness.scripted import admins

TIMES = TokenTimes(max_lifetime_ms=1000, expiry_time_ms=100)
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"


class Desk:
    """One broker's admin over a store that several share."""

    def __init__(self, store: ZkStore | None = None) -> None:
        self.clock = ManualClock()
        self.store = store or admins.store()
        run(self.store.tokens.create_paths())
        self.tokens = DelegationTokens(b"secret", self.clock)
        self.changes = TokenChangeListener(self.store, self.clock, self.tokens)
        run(self.changes.reload())
        self.admin = TokenAdmin(
            self.store, self.tokens, self.changes, self.clock, SeededRandom(1), TIMES
        )

    def create(self, max_lifetime_ms: int = -1) -> TokenInformation:
        return run(self.admin.create(ALICE, CAROL, (BOB,), max_lifetime_ms))

    def renew(self, token: TokenInformation, who: str = ALICE, period_ms: int = -1) -> int:
        return run(self.admin.renew(who, self.tokens.hmac(token.token_id), period_ms)) - NOW_MS

    def expire(self, token: TokenInformation, who: str = ALICE, period_ms: int = -1) -> int:
        return run(self.admin.expire(who, self.tokens.hmac(token.token_id), period_ms)) - NOW_MS


@pytest.mark.parametrize(
    ("asked_ms", "lives_ms", "expires_ms"),
    [(-1, 1000, 100), (0, 1000, 100), (5000, 1000, 100), (500, 500, 100), (50, 50, 50)],
)
def test_a_new_token(asked_ms: int, lives_ms: int, expires_ms: int) -> None:
    desk = Desk()
    token = desk.create(asked_ms)
    assert token[1:] == (
        *(ALICE, CAROL, (BOB,)),
        *(NOW_MS, NOW_MS + lives_ms, NOW_MS + expires_ms),
    )
    assert len(token.token_id) == 22
    assert desk.tokens.get(token.token_id) == token
    assert run(desk.store.tokens.get(token.token_id)) == (token, 0)
    assert run(desk.store.tokens.changed_key(0)) == token.token_id


@pytest.mark.parametrize(
    ("period_ms", "expires_ms"), [(-1, 110), (-7, 110), (0, 10), (60, 70), (5000, 1000)]
)
def test_a_renewal_goes_to_the_longest_life(period_ms: int, expires_ms: int) -> None:
    desk = Desk()
    token = desk.create()
    desk.clock.now_ms += 10
    assert desk.renew(token, period_ms=period_ms) == expires_ms
    changed = desk.tokens.get(token.token_id)
    assert changed == token._replace(expiry_ms=NOW_MS + expires_ms)
    assert run(desk.store.tokens.changes()) == [0, 1]


@pytest.mark.parametrize(("period_ms", "expires_ms"), [(0, 10), (60, 70), (5000, 1000)])
def test_another_time_of_expiry(period_ms: int, expires_ms: int) -> None:
    desk = Desk()
    token = desk.create()
    desk.clock.now_ms += 10
    assert desk.expire(token, BOB, period_ms) == expires_ms


def test_a_token_is_removed_at_once_even_when_it_has_expired() -> None:
    desk = Desk()
    token = desk.create()
    desk.clock.now_ms += 5000
    assert desk.expire(token) == 5000
    assert list(desk.tokens.all()) == []
    assert run(desk.store.tokens.get_all()) == {}
    assert run(desk.store.tokens.changes()) == [0, 1]
    with pytest.raises(ApiError) as refusal:
        desk.expire(token)
    assert refusal.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize("who", [CAROL, "User:dave"])
def test_only_owners_and_renewers_change_it(who: str) -> None:
    desk = Desk()
    token = desk.create()
    for change in (desk.renew, desk.expire):
        with pytest.raises(ApiError) as refusal:
            change(token, who)
        assert refusal.value.code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert desk.renew(token, BOB) == 100


@pytest.mark.parametrize("period_ms", [0, 50])
def test_what_has_expired_stays_so(period_ms: int) -> None:
    desk = Desk()
    token = desk.create()
    desk.clock.now_ms += 101
    for change in (desk.renew, desk.expire):
        with pytest.raises(ApiError) as refusal:
            change(token, ALICE, period_ms)
        assert refusal.value.code is ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_every_broker_is_told_of_a_removal_whose_answer_was_lost() -> None:
    """The session sends it again. A broker that is not told goes on to accept the token."""
    zk = AnswerLosingZooKeeper(server())
    desk = Desk(ZkStore(zk))
    token = desk.create()
    zk.lost_path = f"/delegation_token/tokens/{token.token_id}"
    assert desk.expire(token) == 0
    assert run(desk.store.tokens.changes()) == [0, 1]
    assert list(desk.tokens.all()) == []


def test_what_another_broker_removed_does_not_come_back() -> None:
    one = Desk()
    token = one.create()
    other = Desk(one.store)
    other.expire(token)
    assert one.tokens.get(token.token_id) is not None  # it has not heard of it
    with pytest.raises(ApiError) as refusal:
        one.renew(token)
    assert refusal.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert run(one.store.tokens.get_all()) == {}


def test_expired_tokens_are_removed_and_no_others() -> None:
    desk = Desk()
    brief, long = desk.create(50), desk.create()
    desk.clock.now_ms += 51
    run(desk.admin.delete_expired())
    assert [token.token_id for token in desk.tokens.all()] == [long.token_id]
    assert run(desk.store.tokens.get(brief.token_id)) is None
    assert run(desk.store.tokens.changes()) == [0, 1, 2]


def test_what_another_broker_renewed_has_not_expired() -> None:
    one = Desk()
    token = one.create()
    other = Desk(one.store)
    other.renew(token, period_ms=900)
    one.clock.now_ms += 500
    run(one.admin.delete_expired())
    known = one.tokens.get(token.token_id)
    assert known is not None
    assert known.expiry_ms == NOW_MS + 900

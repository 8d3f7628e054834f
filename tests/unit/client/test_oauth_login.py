"""The tokens of a process: when they are fetched, and what is told if there is none."""

from __future__ import annotations

import pytest

from kafkapy.client.oauth_login import RETRY_PAUSE_MS, Tokens
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.security.oauth.http_request import FetchFailed, HttpRequest
from kafkapy.security.oauth.login import MODULE
from kafkapy.security.oauth.tokens import encode_unsecured
from tests.harness.cores.ports import NOW_MS
from tests.harness.security.oauth_broker import fetching_client, unsecured_client

HOUR_MS = 3_600_000
FILE = fetching_client("file:///token")


class World:
    """A token source, a clock and waits that take no time."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.failures: list[FetchFailed | ConfigError] = []
        self.asked: list[HttpRequest] = []
        self.slept_s: list[float] = []
        self.tokens = Tokens(self.fetch, lambda: self.now_ms, self.slept_s.append)

    def fetch(self, request: HttpRequest) -> bytes:
        self.asked.append(request)
        if self.failures:
            raise self.failures.pop(0)
        now_s = self.now_ms // 1000
        claims = {"sub": f"alice-{len(self.asked)}", "iat": now_s, "exp": now_s + 3600}
        return f"{encode_unsecured(claims)}x".encode()


def test_a_token_is_kept_for_most_of_its_life() -> None:
    world = World()
    assert world.tokens.get(FILE).principal == "alice-1"
    world.now_ms += int(HOUR_MS * 0.79)
    assert world.tokens.get(dict(FILE)).principal == "alice-1"
    world.now_ms = NOW_MS + int(HOUR_MS * 0.86)
    assert world.tokens.get(FILE).principal == "alice-2"
    assert world.tokens.get(fetching_client("file:///other")).principal == "alice-3"


def test_tokens_that_are_made_here() -> None:
    world = World()
    assert world.tokens.get(unsecured_client("bob")).principal == "bob"
    assert world.asked == []
    with pytest.raises(ConfigError, match="set unsecuredLoginStringClaim_sub"):
        world.tokens.get({"sasl.jaas.config": f"{MODULE} required;"})


def test_an_endpoint_that_is_away_for_a_moment() -> None:
    world = World()
    world.failures = [FetchFailed("gone"), FetchFailed("gone")]
    assert world.tokens.get(FILE).principal == "alice-3"
    assert world.slept_s == [0.1, 0.2]


def test_an_endpoint_that_stays_away() -> None:
    world = World()
    world.failures = [FetchFailed("gone")] * 100
    with pytest.raises(ApiError) as refused:
        world.tokens.get(FILE)
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert refused.value.message == "No bearer token can be obtained: gone"
    assert round(sum(world.slept_s), 3) == 10


def test_a_refusal_is_final() -> None:
    world = World()
    world.failures = [FetchFailed("HTTP 401", is_final=True)]
    with pytest.raises(ApiError, match="HTTP 401"):
        world.tokens.get(FILE)
    assert world.slept_s == []


def test_the_old_token_serves_while_it_is_good() -> None:
    world = World()
    assert world.tokens.get(FILE).principal == "alice-1"
    world.now_ms += int(HOUR_MS * 0.9)
    away, empty = FetchFailed("HTTP 500", is_final=True), ConfigError("no access_token")
    world.failures = [away, empty, away, empty]
    for _ in range(2):
        assert world.tokens.get(FILE).principal == "alice-1"
        world.now_ms += RETRY_PAUSE_MS
    world.now_ms = NOW_MS + HOUR_MS
    with pytest.raises(ApiError, match="HTTP 500"):
        world.tokens.get(FILE)
    with pytest.raises(ConfigError, match="no access_token"):
        world.tokens.get(FILE)


def test_no_login_waits_for_an_endpoint_that_is_away_while_the_old_token_is_good() -> None:
    """Each login took ten seconds, and all of them one after the other."""
    world = World()
    world.tokens.get(FILE)
    world.now_ms += int(HOUR_MS * 0.9)
    world.failures = [FetchFailed("gone")] * 2
    for _ in range(3):
        assert world.tokens.get(FILE).principal == "alice-1"
    assert (len(world.asked), world.slept_s) == (2, [])
    world.now_ms += RETRY_PAUSE_MS
    for _ in range(3):
        assert world.tokens.get(FILE).principal == "alice-1"
    assert (len(world.asked), world.slept_s) == (3, [])
    world.now_ms += RETRY_PAUSE_MS
    assert world.tokens.get(FILE).principal == "alice-4"


def test_an_expired_token_is_not_kept_for_the_pause() -> None:
    world = World()
    world.tokens.get(FILE)
    world.now_ms = NOW_MS + HOUR_MS - 1000
    world.failures = [FetchFailed("gone")]
    assert world.tokens.get(FILE).principal == "alice-1"
    world.now_ms += 1000
    assert world.tokens.get(FILE).principal == "alice-3"

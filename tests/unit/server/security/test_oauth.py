"""OAuth at a broker: tokens that it accepts, the sources of its keys, and its own login."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import orjson
import pytest

from kafkapy.common import lasting_work
from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties, of_listener
from kafkapy.security.oauth.client import first_message
from kafkapy.security.oauth.http_request import FetchFailed, HttpRequest
from kafkapy.security.oauth.login import MODULE
from kafkapy.security.oauth.tokens import BearerToken, encode_unsecured
from kafkapy.server.security.oauth import HANDLER, JWKS_URL, OAuth
from tests.harness.cores.ports import ManualClock, SeededRandom
from tests.harness.scripted.scripted_node import in_loop
from tests.harness.security.oauth_broker import LOGIN_HANDLER, VALIDATOR
from tests.harness.security.token_issuer import Signer

PREFIX = "listener.name.x.oauthbearer."
JWKS, TOKEN = "http://issuer/jwks", "http://issuer/token"


def properties(line: str = "", **more: str) -> PrefixedProperties:
    """Those of a listener X for the mechanism; `_` stands for a dot."""
    given = {f"{PREFIX}{key.replace('_', '.')}": value for key, value in more.items()}
    given = {f"{PREFIX}sasl.jaas.config": f"{MODULE} required {line};", **given}
    return of_listener(given, "x").with_prefixes(PREFIX)


def signing(**more: str) -> PrefixedProperties:
    key, url = HANDLER.replace(".", "_"), JWKS_URL.replace(".", "_")
    return properties(**{key: VALIDATOR, url: JWKS, **more})


class World:
    """An issuer that is asked without a network, and a broker's part."""

    def __init__(self) -> None:
        self.clock = ManualClock(wall_ahead_ms=5)
        self.issuer = Signer()
        self.asked: list[str] = []
        self.is_away = False
        self.fault: Exception | None = None  # once
        self.running: list[asyncio.Task[None]] = []
        self.oauth = OAuth(self.clock, SeededRandom(1), self.fetch)

    def fetch(self, request: HttpRequest) -> bytes:
        self.asked.append(request.url)
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        if self.is_away:
            raise FetchFailed("nobody is there", is_final=True)
        if request.url == TOKEN:
            return orjson.dumps({"access_token": self.token("broker")})
        return orjson.dumps(self.issuer.key_set())

    def token(self, subject: str = "alice") -> str:
        now_s = self.clock.time_ms() // 1000
        return self.issuer.sign({"sub": subject, "iat": now_s, "exp": now_s + 60})

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.running.append(asyncio.ensure_future(work))

    def logs_in(self, begin: Any, token: str) -> str | None:
        server = begin()
        server.evaluate(first_message(BearerToken(token, "", 0)))
        username: str | None = server.username
        return username


def test_unsecured_tokens_by_default(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    begin = world.oauth.server_factory(properties('unsecuredValidatorPrincipalClaimName="name"'))
    assert f"{PREFIX}sasl.jaas.config: unsecured tokens are taken" in caplog.text
    exp = world.clock.time_ms() // 1000 + 60
    assert world.logs_in(begin, encode_unsecured({"name": "bob", "exp": exp})) == "bob"
    caplog.set_level(logging.WARNING)
    assert world.logs_in(begin, encode_unsecured({"name": "a\nb", "exp": 0})) is None
    assert caplog.messages[-1].startswith("A bearer token is refused: It expired")


def test_a_listener_that_comes_later_has_keys_as_soon_as_there_are_any(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        world = World()
        await world.oauth.start(world.spawn)
        begin = world.oauth.server_factory(signing())
        world.is_away = True
        await world.oauth.start_added(world.spawn)
        assert f"{JWKS} cannot be had: nobody is there" in caplog.text
        world.is_away = False
        value = world.token()
        assert world.logs_in(begin, value) is None  # and the keys are fetched again
        while world.logs_in(begin, value) is None:
            await asyncio.sleep(0)
        for task in world.running:
            task.cancel()

    in_loop(scenario)


def test_keys_are_fetched_and_follow_the_issuer() -> None:
    async def scenario() -> None:
        world = World()
        begin = world.oauth.server_factory(signing())
        assert world.asked == []  # nothing before the start
        await world.oauth.start(world.spawn)
        assert world.logs_in(begin, world.token()) == "alice"
        world.issuer.rotate("second")
        value = world.token()
        assert world.logs_in(begin, value) is None  # and the keys are fetched again
        while world.logs_in(begin, value) is None:
            await asyncio.sleep(0)
        assert world.asked == [JWKS, JWKS]  # once, however often that was asked for
        for task in world.running:
            task.cancel()

    in_loop(scenario)


def test_a_fault_that_nobody_expected_does_not_end_the_fetching_of_keys(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After the issuer's next key nobody could log in, until the broker was restarted."""
    monkeypatch.setattr(lasting_work, "FAULT_BACKOFF_S", 0)

    async def scenario() -> None:
        world = World()
        begin = world.oauth.server_factory(signing())
        await world.oauth.start(world.spawn)
        world.issuer.rotate("second")
        value = world.token()
        world.fault = RuntimeError("can't start new thread")
        while world.logs_in(begin, value) is None:
            assert not any(task.done() for task in world.running)
            await asyncio.sleep(0)
        for task in world.running:
            task.cancel()

    in_loop(scenario)
    assert "failed, and begins anew" in caplog.text


def test_listeners_that_ask_alike_share_their_keys() -> None:
    async def scenario() -> None:
        world = World()
        for audience in ("a", "b"):
            world.oauth.server_factory(signing(sasl_oauthbearer_expected_audience=audience))
        await world.oauth.start(world.spawn)
        assert world.asked == [JWKS]
        for task in world.running:
            task.cancel()

    in_loop(scenario)


def test_what_a_listener_expects() -> None:
    async def scenario() -> None:
        world = World()
        strict = signing(sasl_oauthbearer_expected_issuer="i")
        begin = world.oauth.server_factory(strict)
        await world.oauth.start(world.spawn)
        assert world.logs_in(begin, world.token()) is None
        now_s = world.clock.time_ms() // 1000
        good = {"sub": "alice", "iat": now_s, "exp": now_s + 60, "iss": "i"}
        assert world.logs_in(begin, world.issuer.sign(good)) == "alice"
        for task in world.running:
            task.cancel()

    in_loop(scenario)


def test_a_key_set_that_is_none() -> None:
    async def scenario() -> None:
        oauth = OAuth(ManualClock(), SeededRandom(1), lambda _: b"<html>")
        oauth.server_factory(signing(sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms="0"))
        with pytest.raises(ConfigError) as refused:
            await oauth.start(lambda work: work.close())
        assert str(refused.value).startswith(
            f"{PREFIX}{JWKS_URL}={JWKS} cannot be had: {JWKS}: it is not JSON"
        )

    in_loop(scenario)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sasl_jaas_config": ""}, f"{PREFIX}sasl.jaas.config must be: {MODULE} required;"),
        ({"sasl_server_callback_handler_class": "x.Y"}, f"{PREFIX}{HANDLER}=x.Y: allowed are"),
        ({"sasl_oauthbearer_jwks_endpoint_url": "x"}, f"{PREFIX}{JWKS_URL}=x must be a URL"),
        ({"sasl_oauthbearer_clock_skew_seconds": "x"}, "clock.skew.seconds=x is not a number"),
        ({"sasl_oauthbearer_jwks_endpoint_refresh_ms": "0"}, "refresh.ms=0 must be at least 1"),
        ({"sasl_oauthbearer_sub_claim_name": " "}, "sub.claim.name must name a claim"),
    ],
)
def test_properties_that_are_wrong(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace(".", r"\.")):
        World().oauth.server_factory(signing(**given))


def test_it_logs_in_with_a_token_of_its_own() -> None:
    world = World()
    begin = world.oauth.login_factory(properties('unsecuredLoginStringClaim_sub="broker"'))
    first = next(begin())
    world.clock.now_ms += 1000
    assert next(begin()) != first  # each login has a token that was just made
    with pytest.raises(ConfigError, match="set unsecuredLoginStringClaim_sub"):
        world.oauth.login_factory(properties())


def test_it_logs_in_with_a_token_of_the_issuers() -> None:
    async def scenario() -> None:
        world = World()
        line = 'clientId="c" clientSecret="s"'
        begin = world.oauth.login_factory(
            properties(
                line,
                sasl_login_callback_handler_class=LOGIN_HANDLER,
                sasl_oauthbearer_token_endpoint_url=TOKEN,
            )
        )
        await world.oauth.start(world.spawn)
        assert next(begin()) == next(begin())
        assert world.asked == [TOKEN]
        for task in world.running:
            task.cancel()

    in_loop(scenario)

"""SASL/OAUTHBEARER of a broker: the validation of clients' tokens, the keys for it, and the
broker's own token for other brokers. Keys and tokens are refreshed in the background."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.errors import ConfigError
from kafkapy.common.lasting_work import keep_running
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.oauth.client import oauth_conversation
from kafkapy.security.oauth.http_fetch import fetch
from kafkapy.security.oauth.http_request import FetchFailed, HttpRequest, endpoint_url
from kafkapy.security.oauth.jwks import Jwk, SignedRules, SignedValidator, check_library, parse_jwks
from kafkapy.security.oauth.login import (
    MODULE,
    LoginSettings,
    fetched_token,
    login_settings,
    token_request,
    unsecured_login_token,
)
from kafkapy.security.oauth.refresh import UnknownKeyIds, retry_waits_ms
from kafkapy.security.oauth.server import OAuthBearerServer
from kafkapy.security.oauth.tokens import BearerToken, IllegalToken, unsecured_rules
from kafkapy.security.sasl.jaas import jaas_options
from kafkapy.security.sasl.server import SaslServer
from kafkapy.server.security.refreshed_value import RefreshedValue, RefreshTimes

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock, Random
    from kafkapy.security.sasl.client import Conversation

logger = logging.getLogger("kafka.security.oauthbearer")

HANDLER: Final = "sasl.server.callback.handler.class"
JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_SIGNED: Final = tuple(
    f"{_PACKAGE}.{part}OAuthBearerValidatorCallbackHandler" for part in ("", "secured.")
)
_UNSECURED: Final = (
    f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
    f"{_PACKAGE}.OAuthBearerUnsecuredValidatorCallbackHandler",
)
_LOGIN_AGAIN_MS: Final = 10_000
_REASON_CHARS_MAX: Final = 300

Fetch = Callable[[HttpRequest], bytes]
Validate = Callable[[str, int], BearerToken]


class OAuth:
    """Created before anything starts. `start` fetches the keys and the token that are needed."""

    def __init__(self, clock: Clock, random: Random, fetch: Fetch = fetch) -> None:
        self._clock = clock
        self._random = random
        self._fetch = fetch
        self._keys: dict[tuple[HttpRequest, int], RefreshedValue[tuple[Jwk, ...]]] = {}
        self._unstarted: list[RefreshedValue[Any]] = []  # not fetched yet

    async def start(self, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Fetch keys and tokens, and start tasks that refresh them. Raises ConfigError."""
        while self._unstarted:
            refreshed = self._unstarted.pop()
            await refreshed.start()
            spawn(_refresh_loop(refreshed))

    async def start_added(self, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Fetch the keys and tokens that were added since. Keys that cannot be fetched are
        requested again, and until then no token is valid."""
        while self._unstarted:
            refreshed = self._unstarted.pop()
            try:
                await refreshed.start()
            except ConfigError as error:
                logger.error("%s", error)
            spawn(_refresh_loop(refreshed))

    # clients of a listener

    def server_factory(self, properties: PrefixedProperties) -> Callable[[], SaslServer]:
        """A factory of logins at a listener, from its properties for OAUTHBEARER.

        Raises:
            ConfigError: names the property and what is wrong with it.
        """
        key = properties.key("sasl.jaas.config")
        line = properties.text("sasl.jaas.config")
        if "OAuthBearerLoginModule" not in line:
            raise ConfigError(
                f"{properties.prefixes[0]}sasl.jaas.config must be: {MODULE} required;"
            )
        handler = properties.text(HANDLER).strip()
        if handler not in (*_SIGNED, *_UNSECURED, ""):
            allowed = ", ".join((*_SIGNED, *_UNSECURED))
            raise ConfigError(f"{properties.key(HANDLER)}={handler}: allowed are {allowed}")
        options = jaas_options(line)
        if handler in _SIGNED:
            validate = self._signed_validator(properties, options)
        else:
            validate = unsecured_rules(options, key).validate
            logger.warning("%s: unsecured tokens are taken, which anybody can write", key)
        return partial(self._begin, partial(self._validate, validate))

    def _begin(self, validate: Callable[[str], BearerToken]) -> SaslServer:
        return OAuthBearerServer(validate, self._clock.time_ms)

    def _validate(self, validate: Validate, value: str) -> BearerToken:
        try:
            return validate(value, self._clock.time_ms())
        except IllegalToken as illegal:
            # It may contain text of the client: log one line of limited length.
            reason = " ".join(str(illegal).split())[:_REASON_CHARS_MAX]
            logger.warning("A bearer token is refused: %s", reason)
            raise

    def _signed_validator(
        self, properties: PrefixedProperties, options: dict[str, str]
    ) -> Validate:
        check_library(f"{properties.key(HANDLER)}={properties.text(HANDLER).strip()}")
        name = "sasl.oauthbearer"
        rules = SignedRules(
            tuple(properties.items(f"{name}.expected.audience")),
            properties.text(f"{name}.expected.issuer").strip(),
            properties.number(f"{name}.clock.skew.seconds", 30),
            _claim_name(properties, f"{name}.scope.claim.name", "scope"),
            _claim_name(properties, f"{name}.sub.claim.name", "sub"),
        )
        tls = tuple(sorted((k, v) for k, v in options.items() if k.startswith("ssl.")))
        url = endpoint_url(properties, JWKS_URL)
        keys = self._refreshed_keys(properties, HttpRequest(url, tls=tls))
        ids = UnknownKeyIds()
        return SignedValidator(
            rules, lambda: keys.latest or (), partial(self._on_unknown_key_id, ids, keys)
        ).validate

    def _refreshed_keys(
        self, properties: PrefixedProperties, request: HttpRequest
    ) -> RefreshedValue[tuple[Jwk, ...]]:
        """The keys for a request. Listeners with the same request and interval share them."""
        name = "sasl.oauthbearer.jwks.endpoint"
        refresh_ms = properties.number(f"{name}.refresh.ms", 3_600_000)
        retry_ms = properties.number(f"{name}.retry.backoff.ms", 100)
        retry_max_ms = properties.number(f"{name}.retry.backoff.max.ms", 10_000)
        if refresh_ms == 0:
            raise ConfigError(f"{properties.key(f'{name}.refresh.ms')}=0 must be at least 1")
        known = self._keys.get((request, refresh_ms))
        if known is None:
            value_name = f"{properties.key(JWKS_URL)}={request.url}"
            times: RefreshTimes[tuple[Jwk, ...]] = RefreshTimes(
                lambda _: refresh_ms, refresh_ms, lambda: retry_waits_ms(retry_ms, retry_max_ms)
            )
            known = RefreshedValue(value_name, lambda: self._fetch_keys(request), times)
            self._keys[request, refresh_ms] = known
            self._unstarted.append(known)
        return known

    def _fetch_keys(self, request: HttpRequest) -> tuple[Jwk, ...]:
        try:
            return parse_jwks(self._fetch(request))
        except ValueError as error:
            raise FetchFailed(f"{request.url}: {error}") from None

    def _on_unknown_key_id(
        self, ids: UnknownKeyIds, keys: RefreshedValue[tuple[Jwk, ...]], key_id: str
    ) -> None:
        if ids.may_refresh(key_id, self._clock.monotonic_ms()):
            keys.refresh_soon()

    # this broker as a client

    def login_factory(self, properties: PrefixedProperties) -> Callable[[], Conversation]:
        """A factory of this broker's logins with others, from the properties of the listener.

        Raises:
            ConfigError: names the property and what is wrong with it.
        """
        settings = login_settings(properties)
        if not settings.url:
            unsecured_login_token(
                settings, self._clock.time_ms()
            )  # so that a mistake is reported now
            return lambda: oauth_conversation(
                unsecured_login_token(settings, self._clock.time_ms())
            )
        request = token_request(settings)
        times = RefreshTimes(
            partial(self._refresh_in_ms, settings),
            _LOGIN_AGAIN_MS,
            lambda: retry_waits_ms(settings.retry_ms, settings.retry_max_ms),
        )
        value_name = f"The token of {settings.url}"
        refreshed = RefreshedValue(
            value_name, lambda: fetched_token(settings, self._fetch(request)), times
        )
        self._unstarted.append(refreshed)
        return lambda: oauth_conversation(refreshed.value)

    def _refresh_in_ms(self, settings: LoginSettings, token: BearerToken) -> int:
        chance = self._random.below(1000) / 1000
        return settings.window.delay_ms(token, self._clock.time_ms(), chance)


def _refresh_loop(refreshed: RefreshedValue[Any]) -> Coroutine[Any, Any, None]:
    return keep_running(refreshed.name, refreshed.run, logger, refreshed.refresh_soon)


def _claim_name(properties: PrefixedProperties, name: str, default: str) -> str:
    value = properties.text(name, default).strip()
    if not value:
        raise ConfigError(f"{properties.key(name)} must name a claim")
    return value

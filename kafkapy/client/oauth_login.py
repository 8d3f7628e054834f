"""The bearer tokens of this process. Each is fetched once, and again after most of its lifetime. If
that fails, the old token is used until it expires.

As in Kafka, clients with the same properties share a login.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.common.system import SystemClock
from kafkapy.security.oauth.http_fetch import fetch
from kafkapy.security.oauth.http_request import FetchFailed, HttpRequest
from kafkapy.security.oauth.login import (
    LoginSettings,
    fetched_token,
    login_settings,
    token_request,
    unsecured_login_token,
)
from kafkapy.security.oauth.refresh import retry_waits_ms
from kafkapy.security.oauth.tokens import BearerToken

RETRY_PAUSE_MS: Final = 10_000
"""The pause after a failed refresh (`ExpiringCredentialRefreshingLogin`)."""
_CLOCK: Final = SystemClock()


class _CachedToken(NamedTuple):
    token: BearerToken
    refresh_at_ms: int


class Tokens:
    """Tokens by their login settings. Thread-safe; `get` blocks."""

    def __init__(
        self,
        fetch: Callable[[HttpRequest], bytes] = fetch,
        now_ms: Callable[[], int] = _CLOCK.time_ms,
        sleep_s: Callable[[float], None] = time.sleep,
    ) -> None:
        """`fetch` raises FetchFailed; `now_ms` is wall-clock time."""
        self._fetch = fetch
        self._now_ms = now_ms
        self._sleep_s = sleep_s
        self._lock = threading.Lock()
        self._cached: dict[LoginSettings, _CachedToken] = {}

    def get(self, properties: Mapping[str, str]) -> BearerToken:
        """A token that is valid for some time.

        Raises:
            ConfigError: the properties contain no way to obtain one.
            ApiError: SASL_AUTHENTICATION_FAILED, no token can be obtained.
        """
        settings = login_settings(PrefixedProperties(properties))
        with self._lock:
            cached = self._cached.get(settings)
            if cached is not None and self._now_ms() < cached.refresh_at_ms:
                return cached.token
            is_valid = cached is not None and self._now_ms() < cached.token.expires_ms
            try:
                # Without back-off while the old token is valid: all logins wait for this one.
                token = self._new_token(settings, retries=not is_valid)
            except (FetchFailed, ConfigError) as failure:
                now_ms = self._now_ms()
                if cached is not None and now_ms < cached.token.expires_ms:
                    again_at_ms = min(now_ms + RETRY_PAUSE_MS, cached.token.expires_ms)
                    self._cached[settings] = cached._replace(refresh_at_ms=again_at_ms)
                    return cached.token
                if isinstance(failure, ConfigError):
                    raise
                raise ApiError(
                    ErrorCode.SASL_AUTHENTICATION_FAILED,
                    f"No bearer token can be obtained: {failure}",
                ) from failure
            now_ms = self._now_ms()
            refresh_at_ms = now_ms + settings.window.delay_ms(token, now_ms, random.random())
            self._cached[settings] = _CachedToken(token, refresh_at_ms)
            return token

    def _new_token(self, settings: LoginSettings, *, retries: bool) -> BearerToken:
        if not settings.url:
            return unsecured_login_token(settings, self._now_ms())
        request = token_request(settings)
        retry_max_ms = settings.retry_max_ms if retries else 0
        for wait_ms in retry_waits_ms(settings.retry_ms, retry_max_ms):
            try:
                return fetched_token(settings, self._fetch(request))
            except FetchFailed as failure:
                if failure.is_final:
                    raise
            self._sleep_s(wait_ms / 1000)
        return fetched_token(settings, self._fetch(request))


TOKENS = Tokens()
"""The tokens of this process."""

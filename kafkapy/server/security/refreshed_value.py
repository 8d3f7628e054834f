"""A remote value (keys, a token) that is fetched at the start and refreshed in the background. Its
users never wait for the network."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from kafkapy.common.errors import ConfigError
from kafkapy.security.oauth.http_request import FetchFailed

logger = logging.getLogger("kafka.security.oauthbearer")

T = TypeVar("T")


class RefreshTimes(NamedTuple, Generic[T]):
    """The times of fetches. `after_value_ms` and `after_failure_ms` are the waits after a fetch
    that succeeded or failed, `retry_waits_ms` those between the attempts of one fetch.
    Within `pause_ms` after a fetch, `refresh_soon` is delayed: clients without a valid token must
    not be able to cause one request after another."""

    after_value_ms: Callable[[T], int]
    after_failure_ms: int
    retry_waits_ms: Callable[[], Iterator[int]]
    pause_ms: int = 1000


class RefreshedValue(Generic[T]):
    """Fixed: its name in messages, its fetch function (blocking, in a thread) and its times."""

    def __init__(self, name: str, fetch: Callable[[], T], times: RefreshTimes[T]) -> None:
        """`fetch` raises FetchFailed, or ConfigError for errors that persist at a retry."""
        self.name = name
        self._fetch = fetch
        self._times = times
        self._refresh_requested = asyncio.Event()
        self._value: T | None = None

    @property
    def value(self) -> T:
        """The latest value. It exists after `start`."""
        assert self._value is not None, self.name
        return self._value

    @property
    def latest(self) -> T | None:
        """The latest value, if one was fetched."""
        return self._value

    def refresh_soon(self) -> None:
        """Refresh soon. Repeated calls coalesce into one."""
        self._refresh_requested.set()

    async def start(self) -> None:
        """Fetch for the first time. Raises ConfigError if this fails."""
        try:
            self._value = await self._fetch_with_retries()
        except FetchFailed as failure:
            raise ConfigError(f"{self.name} cannot be had: {failure}") from failure

    async def run(self) -> None:
        """Refresh the value until cancelled."""
        wait_ms = self._times.after_failure_ms
        if self._value is not None:
            wait_ms = self._times.after_value_ms(self._value)
        while True:
            pause_ms = min(self._times.pause_ms, wait_ms)
            await asyncio.sleep(pause_ms / 1000)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._refresh_requested.wait(), (wait_ms - pause_ms) / 1000)
            self._refresh_requested.clear()
            try:
                self._value = await self._fetch_with_retries()
            except (FetchFailed, ConfigError) as error:
                logger.warning("%s cannot be refreshed, the old goes on: %s", self.name, error)
                wait_ms = self._times.after_failure_ms
            else:
                logger.info("%s: refreshed", self.name)
                wait_ms = self._times.after_value_ms(self.value)

    async def _fetch_with_retries(self) -> T:
        for wait_ms in self._times.retry_waits_ms():
            try:
                return await asyncio.to_thread(self._fetch)
            except FetchFailed as failure:
                if failure.is_final:
                    raise
                logger.debug("%s: %s; again in %d ms", self.name, failure, wait_ms)
            await asyncio.sleep(wait_ms / 1000)
        return await asyncio.to_thread(self._fetch)

"""A value from elsewhere (keys, a token) that is fetched at the start and then again and again, in
the background: who needs it finds it there, and never waits for the network."""

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


class Rhythm(NamedTuple, Generic[T]):
    """When to fetch: ms until the next time after a value came, and after none came; the waits
    between attempts of one time; and how long after each of them no hurry counts: who has no token
    must not be able to have us ask, and ask."""

    after_value_ms: Callable[[T], int]
    after_failure_ms: int
    retry_waits_ms: Callable[[], Iterator[int]]
    pause_ms: int = 1000


class RefreshedValue(Generic[T]):
    """Fixed: what it is for messages, how it is fetched (blocking, in a thread) and when."""

    def __init__(self, what: str, fetch: Callable[[], T], rhythm: Rhythm[T]) -> None:
        """`fetch` raises FetchFailed, or ConfigError for what trying again does not mend."""
        self.what = what
        self._fetch = fetch
        self._rhythm = rhythm
        self._hurried = asyncio.Event()
        self._value: T | None = None

    @property
    def value(self) -> T:
        """The latest; there is one once `start` is over."""
        assert self._value is not None, self.what
        return self._value

    @property
    def latest(self) -> T | None:
        """The latest, if any has come yet."""
        return self._value

    def refresh_soon(self) -> None:
        """Fetch as soon as may be; asked for several times it is done once."""
        self._hurried.set()

    async def start(self) -> None:
        """Fetch for the first time. Raises ConfigError: it cannot be had."""
        try:
            self._value = await self._fetched()
        except FetchFailed as failure:
            raise ConfigError(f"{self.what} cannot be had: {failure}") from failure

    async def run(self) -> None:
        """Fetch again and again, until cancelled."""
        wait_ms = self._rhythm.after_failure_ms
        if self._value is not None:
            wait_ms = self._rhythm.after_value_ms(self._value)
        while True:
            pause_ms = min(self._rhythm.pause_ms, wait_ms)
            await asyncio.sleep(pause_ms / 1000)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurried.wait(), (wait_ms - pause_ms) / 1000)
            self._hurried.clear()
            try:
                self._value = await self._fetched()
            except (FetchFailed, ConfigError) as error:
                logger.warning("%s cannot be refreshed, the old goes on: %s", self.what, error)
                wait_ms = self._rhythm.after_failure_ms
            else:
                logger.info("%s: refreshed", self.what)
                wait_ms = self._rhythm.after_value_ms(self.value)

    async def _fetched(self) -> T:
        for wait_ms in self._rhythm.retry_waits_ms():
            try:
                return await asyncio.to_thread(self._fetch)
            except FetchFailed as failure:
                if failure.is_final:
                    raise
                logger.debug("%s: %s; again in %d ms", self.what, failure, wait_ms)
            await asyncio.sleep(wait_ms / 1000)
        return await asyncio.to_thread(self._fetch)

"""Subscribes a consumer to the topics that match an expression (`Consumer.subscribe(Pattern)`)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaException

from kafkapy.admin.topic_filter import name_pattern
from kafkapy.client.properties import int_property
from kafkapy.common.topic_partition import INTERNAL_TOPICS
from kafkapy.tools.librdkafka_client import subscribe

_MAX_AGE: Final = "metadata.max.age.ms"
_MAX_AGE_MS: Final = 300_000
_RETRY_S: Final = 1.0
# A cluster with very many topics responds late, so the limit grows with each look.
_FIRST_LIMIT_S: Final = 1.0
_LAST_LIMIT_S: Final = 8.0


class MatchingTopics:
    """Keeps a consumer subscribed to the topics that match an expression in Java's syntax.

    librdkafka would read the expression as POSIX, where `[\\d]` and `(?i)` have other meanings.
    """

    def __init__(self, consumer: Consumer, expression: str, properties: Mapping[str, str]) -> None:
        """
        Raises:
            ConfigError: from `name_pattern`, or a property has no valid number.
        """
        self._consumer = consumer
        self._pattern = name_pattern(expression)
        excludes = properties.get("exclude.internal.topics", "true").lower() == "true"
        self._hidden = INTERNAL_TOPICS if excludes else frozenset()
        self._max_age_s = int_property(properties, _MAX_AGE, _MAX_AGE_MS) / 1000
        self._limit_s = _FIRST_LIMIT_S
        self._next_s = time.monotonic()
        self._topics: list[str] = []

    def refresh(self) -> bool:
        """List the topics if the last list is too old, and subscribe to those that match. Returns
        whether a broker responded.
        """
        if time.monotonic() < self._next_s:
            return False
        try:
            found = self._consumer.list_topics(timeout=self._limit_s).topics
        except KafkaException:
            self._limit_s = min(self._limit_s * 2, _LAST_LIMIT_S)
            self._next_s = time.monotonic() + _RETRY_S
            return False
        self._next_s = time.monotonic() + self._max_age_s
        matching = sorted(name for name in found if self._pattern.fullmatch(name))
        self._subscribe([name for name in matching if name not in self._hidden])
        return True

    def refresh_soon(self) -> None:
        """Make the next `refresh` list the topics: one of them was deleted."""
        self._next_s = time.monotonic()

    def _subscribe(self, topics: list[str]) -> None:
        if topics == self._topics:
            return
        if topics:
            subscribe(self._consumer, topics)
        else:
            self._consumer.unsubscribe()
        self._topics = topics

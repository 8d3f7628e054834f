"""The topics in this broker's metadata, for the group coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.patterns import InvalidPattern, compile_linear
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.groups.topic_source import KnownTopic
from kafkapy.metadata.cache import MetadataCache
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter

_PATTERN_CACHE_SIZE = 256
_PATTERN_BYTES_MAX: Final = 2048
_PROGRAM_MAX: Final = 4000
"""The instructions of a compiled expression. A step of RE2's slow matcher takes time for each."""
_MEMORY_BYTES: Final = 2 << 20
"""RE2's memory for an expression. It bounds the time to compile. It must hold the states of the
fast matcher for a program of `_PROGRAM_MAX`: with 256 KiB, RE2 took the slow one, 5 ms a name."""
_KAFKA_ERROR_TEXTS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "pattern too large",
}
"""The error texts of RE2/J, which Kafka uses, by error text of RE2."""


class GroupTopics:
    """`TopicSource` over the metadata cache; regular expressions are RE2's."""

    def __init__(self, metadata: MetadataCache, waiter: MetadataWaiter, start_ms: int) -> None:
        """`start_ms` is the time at which the broker started."""
        self._metadata = metadata
        self._waiter = waiter
        self._start_ms = start_ms

    @property
    def is_known(self) -> bool:
        """Whether the metadata is that of the cluster."""
        return self._waiter.is_complete

    @property
    def version(self) -> int:
        """The version of the metadata image. It differs between brokers, so that the next
        coordinator of a group matches its regular expressions again.
        """
        return self._start_ms + self._metadata.image.version

    def find(self, name: str) -> KnownTopic | None:
        """A topic by name, if it exists and has an id."""
        topic = self._metadata.image.topic(name)
        if topic is None or topic.topic_id.is_zero:
            return None
        return KnownTopic(topic.topic_id, len(topic.partitions))

    def names(self) -> Iterable[str]:
        """The names of all topics."""
        return self._metadata.image.topics

    def name_of(self, topic_id: Uuid) -> str | None:
        """The name of a topic."""
        return self._metadata.image.topic_names_by_id.get(topic_id)

    def pattern(self, regex: str) -> Callable[[str], bool]:
        """Whether the whole of a name matches the regular expression.

        Raises:
            ApiError: INVALID_REGULAR_EXPRESSION.
        """
        return _pattern(regex)


@lru_cache(_PATTERN_CACHE_SIZE)
def _pattern(regex: str) -> Callable[[str], bool]:
    if len(regex.encode()) > _PATTERN_BYTES_MAX:
        raise ApiError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex has more than {_PATTERN_BYTES_MAX} bytes.",
        )
    try:
        compiled = compile_linear(regex, _MEMORY_BYTES)
        if compiled.programsize > _PROGRAM_MAX:
            raise InvalidPattern("pattern too large")
    except InvalidPattern as error:
        kind = str(error).partition(": ")[0]
        reason = _KAFKA_ERROR_TEXTS.get(kind, kind)
        raise ApiError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}.",
        ) from error
    return lambda name: compiled.fullmatch(name) is not None

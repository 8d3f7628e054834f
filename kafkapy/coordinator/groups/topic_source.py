"""The group coordinator's port to the topics in the broker's metadata, and to the broker's library
of regular expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid


class KnownTopic(NamedTuple):
    """One topic: its id and how many partitions it has."""

    topic_id: Uuid
    num_partitions: int


class TopicSource(Protocol):
    """The current topics in the broker's metadata."""

    @property
    def is_known(self) -> bool:
        """Whether the broker has received its cluster's metadata. Before, topics are missing."""
        ...

    @property
    def version(self) -> int:
        """A number that changes whenever the topics may have changed."""
        ...

    def find(self, name: str) -> KnownTopic | None:
        """A topic by name, if it exists and has an id."""
        ...

    def names(self) -> Iterable[str]:
        """The names of all topics."""
        ...

    def name_of(self, topic_id: Uuid) -> str | None:
        """The name of a topic."""
        ...

    def pattern(self, regex: str) -> Callable[[str], bool]:
        """A function that returns whether a whole name matches the regular expression.

        Raises:
            ApiError: INVALID_REGULAR_EXPRESSION.
        """
        ...


class _NoTopics:
    is_known: Final = True
    version: Final = 0

    def find(self, name: str) -> KnownTopic | None:
        return None

    def names(self) -> Iterable[str]:
        return ()

    def name_of(self, topic_id: Uuid) -> str | None:
        return None

    def pattern(self, regex: str) -> Callable[[str], bool]:
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION)


NO_TOPICS: Final[TopicSource] = _NoTopics()
"""The topics of a coordinator for classic groups only."""

"""Subscriptions and assignments that consumers embed in the classic group protocol.

Both begin with a version, and each version is a prefix of the next one. Bytes of a version after 3
are read as version 3. Kafka: `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from kafkapy.common.topic_partition import TopicPartition

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
HIGHEST_VERSION: Final = 3

BYTES_MAX: Final = 2**20
"""The limit of what a coordinator reads at once: to read a megabyte of short names takes about a
second. By default, larger groups cannot be stored (`max.message.bytes`)."""

_I16: Final = Struct(">h")
_I32: Final = Struct(">i")


class Subscription(NamedTuple):
    """A member's topics, and the partitions that it owns (cooperative, v1+)."""

    version: int
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    rack_id: str | None = None


class MemberAssignment(NamedTuple):
    """The partitions that a group leader assigned to a member, in the leader's order."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes = b""


def version_of(data: bytes) -> int:
    """The version at the start of `data`; 0 if the bytes cannot begin a subscription."""
    return max(int.from_bytes(data[: _I16.size], "big", signed=True), 0)


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all subscriptions; None if one is unreadable: some clients send other data.
    None also if different lists of topics have more than `BYTES_MAX` in all."""
    topics: set[str] = set()
    last_list, bytes_left = b"", BYTES_MAX
    try:
        for subscription in subscriptions:
            if last_list and subscription.startswith(last_list):
                continue  # most members of a group have the same list
            reader = _Reader(subscription[:bytes_left])
            reader.version()
            topics.update(reader.topics())
            last_list = subscription[: reader.position]
            bytes_left -= reader.position
    except (StructError, ValueError):
        return None
    return frozenset(topics)


def read_subscription(data: bytes) -> Subscription:
    """Read a subscription.

    Raises:
        ValueError: the bytes are not a subscription.
    """
    try:
        reader = _Reader(data)
        version = reader.version()
        topics = tuple(reader.topics())
        reader.nullable_bytes()
        owned = tuple(reader.partitions()) if version >= 1 else ()
        if version >= 2:
            reader.i32()  # the generation in which they were owned
        rack_id = reader.nullable_string() if version >= 3 else None
    except (StructError, ValueError) as error:
        raise ValueError(f"not a consumer's subscription: {error}") from error
    return Subscription(version, topics, owned, rack_id)


def read_assignment(data: bytes) -> MemberAssignment:
    """Read an assignment. Empty data means no partitions.

    Raises:
        ValueError: the bytes are not an assignment.
    """
    if not data:
        return MemberAssignment(())
    try:
        reader = _Reader(data)
        reader.version()
        return MemberAssignment(tuple(reader.partitions()), reader.nullable_bytes())
    except (StructError, ValueError) as error:
        raise ValueError(f"not a consumer's assignment: {error}") from error


def encode_assignment(partitions: Mapping[str, Iterable[int]], version: int) -> bytes:
    """The bytes of an assignment, in the version of the member's subscription."""
    parts = [_I16.pack(min(version, HIGHEST_VERSION)), _I32.pack(len(partitions))]
    for topic, indexes in sorted(partitions.items()):
        name, numbers = topic.encode(), sorted(indexes)
        parts += (_I16.pack(len(name)), name, _I32.pack(len(numbers)), *map(_I32.pack, numbers))
    return b"".join((*parts, _I32.pack(-1)))  # no user data


class _Reader:
    """Reads fields in turn. Raises StructError or ValueError for unreadable ones."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def version(self) -> int:
        version = self._int(_I16)
        if version < 0:
            raise ValueError(f"version {version}")
        return min(version, HIGHEST_VERSION)

    def topics(self) -> Iterable[str]:
        for _ in range(self._count()):
            yield self._string()

    def partitions(self) -> Iterable[TopicPartition]:
        for topic in self.topics():
            for _ in range(self._count()):
                yield TopicPartition(topic, self.i32())

    def i32(self) -> int:
        return self._int(_I32)

    def nullable_string(self) -> str | None:
        size = self._int(_I16)
        return None if size == -1 else self._take(size).decode()

    def nullable_bytes(self) -> bytes:
        """Bytes; empty if they are null."""
        size = self.i32()
        return b"" if size == -1 else self._take(size)

    def _string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise ValueError("a string is null")
        return text

    def _count(self) -> int:
        count = self.i32()
        if count < 0:
            raise ValueError("negative count")
        return count

    def _int(self, form: Struct) -> int:
        (value,) = form.unpack_from(self._data, self.position)
        self.position += form.size
        return int(value)

    def _take(self, size: int) -> bytes:
        start, self.position = self.position, self.position + size
        if size < 0 or self.position > len(self._data):
            raise ValueError(f"a length of {size} does not fit")
        return self._data[start : self.position]

"""Topic names, partitions, and the partition that coordinates a key."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from struct import unpack
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset(
    {GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC}
)

TOPIC_NAME_LENGTH_MAX: Final = 249
# A pattern, compiled on first use: most commands do not use it.
_LEGAL: Final = r"[a-zA-Z0-9._-]+"


class TopicPartition(NamedTuple):
    """One partition of one topic; `str()` gives Kafka's `topic-partition`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def validate_topic_name(name: str) -> None:
    """Check a topic name as `org.apache.kafka.common.internals.Topic.validate`, in its words.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION.
    """
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        problem = f"the length of '{name}' is longer than the max allowed length 249"
    elif not re.fullmatch(_LEGAL, name):  # `$` would let a newline at the end pass
        problem = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    else:
        return
    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def is_topic_name(name: str) -> bool:
    """Whether a topic may have this name. An invalid name from the network, ZooKeeper or a
    directory must never become part of a path, a checkpoint or the metadata."""
    try:
        validate_topic_name(name)
    except ApiError:
        return False
    return True


def quoted(name: str) -> str:
    """An untrusted name for a log line: of bounded length, and on one line."""
    return repr(name[:TOPIC_NAME_LENGTH_MAX])


def names_collide(a: str, b: str) -> bool:
    """Whether two names have the same metric name (in which `.` becomes `_`)."""
    return a.replace(".", "_") == b.replace(".", "_")


def java_string_hash(text: str) -> int:
    """`String.hashCode()`: 32-bit signed, over UTF-16 code units. Cached, because
    requests repeat a few group and transactional ids."""
    return _cached_hash(text) if len(text) <= _CACHED_LENGTH_MAX else _hash(text)


def _hash(text: str) -> int:
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for unit in unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 0x100000000 if value >= 0x80000000 else value


_CACHED_LENGTH_MAX: Final = 255
"""The length limit of cached texts. Clients choose them, and longer ones would take memory."""
_cached_hash = lru_cache(maxsize=4096)(_hash)


def partition_for_key(key: str, num_partitions: int) -> int:
    """The coordinator partition of a group or transactional id (`Utils.abs(hash) % n`)."""
    hashed = java_string_hash(key)
    return (0 if hashed == -(2**31) else abs(hashed)) % num_partitions


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition indexes by topic, in the order given."""
    grouped: dict[str, list[int]] = {}
    for topic, index in partitions:
        grouped.setdefault(topic, []).append(index)
    return grouped

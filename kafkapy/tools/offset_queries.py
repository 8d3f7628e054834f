"""Parses the partitions and the time of `get-offsets` (`GetOffsetShell`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from kafkapy.admin.topic_filter import TopicFilter
from kafkapy.client.offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
)
from kafkapy.common.comma_separated import java_split
from kafkapy.common.errors import ConfigError
from kafkapy.common.java_numbers import is_integer, is_natural
from kafkapy.common.topic_partition import TopicPartition

PartitionFilter = Callable[[TopicPartition], bool]

_SPECIAL_TIMES: Final = {
    "earliest": EARLIEST_TIMESTAMP,
    "latest": LATEST_TIMESTAMP,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL_TIMESTAMP,
    "latest-tiered": LATEST_TIERED_TIMESTAMP,
}
# Python's `int` refuses more than 4,300 digits.
_LONG: Final = r"[+-]?[0-9]{1,4000}"
# Topic regex, then a number, a-b, a- or -b; every part is optional.
_RULE: Final = re.compile(r"([^:]*)(?::(?:(\d+)|(\d*)-(\d*)|))?")


def parse_time(text: str) -> int:
    """A special time by name or number, or milliseconds since the epoch.

    Raises:
        ConfigError: it is neither.
    """
    if text in _SPECIAL_TIMES:
        return _SPECIAL_TIMES[text]
    if re.fullmatch(_LONG, text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    raise ConfigError(
        f"Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or "
        "max-timestamp / -4 or earliest-local / -5 or latest-tiered, or a specified long "
        "format timestamp"
    )


def by_topic_and_partitions(topic: str | None, partitions: str | None) -> PartitionFilter:
    """The filter of `--topic` and `--partitions`.

    Raises:
        ConfigError: `topic` is not a regular expression, or `partitions` not a list of numbers.
    """
    topics = TopicFilter(topic)
    if not partitions:
        return lambda tp: topics.allows(tp.topic)
    words = java_split(partitions)
    if not all(map(is_integer, words)):
        raise ConfigError(
            "--partitions expects a comma separated list of numeric partition ids, but received: "
            + partitions
        )
    numbers = set(map(int, words))
    return lambda tp: (not numbers or tp.partition in numbers) and topics.allows(tp.topic)


def by_rules(text: str) -> PartitionFilter:
    """The filter of `--topic-partitions`: `t:1,t2:0-3,t3,:5-`. Upper ends are exclusive.

    Raises:
        ConfigError: a rule is malformed; the message has it.
    """
    rules = [_rule(word) for word in java_split(text)]
    return lambda tp: any(rule(tp) for rule in rules)


def _rule(text: str) -> PartitionFilter:
    match = _RULE.fullmatch(text)
    if match is None or not all(is_natural(n) for n in match.groups()[1:] if n):
        raise ConfigError(f"Invalid rule specification: {text}")
    topics = TopicFilter(match[1] or None)
    low = int(match[2] or match[3] or 0)
    high = low + 1 if match[2] else int(match[4]) if match[4] else None
    return lambda tp: (
        low <= tp.partition and (high is None or tp.partition < high) and topics.allows(tp.topic)
    )


def in_text_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Sort partitions by the text `topic-partition`, as Kafka's tool does: foo-10 before foo-2."""
    return sorted(partitions, key=str)

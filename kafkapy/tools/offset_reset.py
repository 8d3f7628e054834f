"""Where `consumer-groups --reset-offsets` moves a group: scope, scenario, plan.

Everything here decides; offsets are asked for through `OffsetSource`, so that tests need no broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition

Offsets = dict[TopicPartition, int]
Warn = Callable[[str], None]


class Scenario(StrEnum):
    """The scenarios by their options, in the order in which Kafka's tool looks for them."""

    TO_OFFSET = "to-offset"
    TO_EARLIEST = "to-earliest"
    TO_LATEST = "to-latest"
    SHIFT_BY = "shift-by"
    TO_DATETIME = "to-datetime"
    BY_DURATION = "by-duration"
    FROM_FILE = "from-file"
    TO_CURRENT = "to-current"


@dataclass(frozen=True, slots=True)
class Reset:
    """A scenario with its argument: an offset, a distance, or a time in milliseconds (`value`), or
    the offsets of a file (`offsets`)."""

    scenario: Scenario
    value: int = 0
    offsets: Mapping[TopicPartition, int] | None = None


class TopicScope(NamedTuple):
    """`--topic t` (all partitions, None) or `--topic t:0,1`."""

    topic: str
    partitions: tuple[int, ...] | None


class OffsetSource(Protocol):
    """What the cluster knows of partitions; a partition it cannot tell of raises ApiError."""

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Log start offsets."""

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Log end offsets."""

    def at(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> Offsets:
        """The first offset at or after a time; -1 where no record is that late."""


def parse_topic_scope(word: str) -> TopicScope:
    """One `--topic`.

    Raises:
        ConfigError: in the words of `ConsumerGroupCommand.parseTopicsWithPartitions`.
    """
    topic, colon, numbers = word.partition(":")
    if not colon:
        return TopicScope(topic, None)
    if not numbers or ":" in numbers or not topic:
        raise ConfigError(f"Invalid topic arg '{word}', expected topic name and partitions")
    partitions = []
    for number in numbers.split(","):
        if not number.isdecimal():
            raise ConfigError(f"Invalid partition '{number}' specified in topic arg '{word}''")
        partitions.append(int(number))
    return TopicScope(topic, tuple(partitions))


def expand(
    scopes: Sequence[TopicScope], partitions_of: Callable[[str], Iterable[int]]
) -> list[TopicPartition]:
    """The partitions of scopes, each once; `partitions_of` is asked for whole topics."""
    found: dict[TopicPartition, None] = {}
    for topic, partitions in scopes:
        chosen = partitions_of(topic) if partitions is None else partitions
        found.update((TopicPartition(topic, partition), None) for partition in chosen)
    return list(found)


def plan(
    reset: Reset,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    source: OffsetSource,
    warn: Warn,
) -> Offsets:
    """The new offset of each partition, by topic and partition.

    Raises:
        ConfigError: a partition without a committed offset was to be shifted.
        ApiError: the cluster cannot tell.
    """
    return dict(
        sorted(_PLANNERS[reset.scenario](reset, partitions, committed, source, warn).items())
    )


def _to_offset(
    reset: Reset,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    source: OffsetSource,
    warn: Warn,
) -> Offsets:
    return _clamped(dict.fromkeys(partitions, reset.value), source, warn)


def _to_earliest(
    reset: Reset,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    source: OffsetSource,
    warn: Warn,
) -> Offsets:
    return source.earliest(partitions)


def _to_latest(
    reset: Reset,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    source: OffsetSource,
    warn: Warn,
) -> Offsets:
    return source.latest(partitions)


def _shift_by(
    reset: Reset,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    source: OffsetSource,
    warn: Warn,
) -> Offsets:
    for partition in partitions:
        if partition not in committed:
            raise ConfigError(
                f"Cannot shift offset for partition {partition} since there is no current committed"
                " offset"
            )
    return _clamped({tp: committed[tp] + reset.value for tp in partitions}, source, warn)


def _to_time(
    reset: Reset,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    source: OffsetSource,
    warn: Warn,
) -> Offsets:
    found = source.at(partitions, reset.value)
    late = [tp for tp in partitions if found[tp] < 0]
    for tp in late:
        warn(
            f"\nWarn: Partition {tp.partition} from topic {tp.topic} is empty. Falling back to"
            " latest known offset."
        )
    return found | (source.latest(late) if late else {})


def _from_file(
    reset: Reset,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    source: OffsetSource,
    warn: Warn,
) -> Offsets:
    return _clamped(dict(reset.offsets or {}), source, warn)


def _to_current(
    reset: Reset,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    source: OffsetSource,
    warn: Warn,
) -> Offsets:
    absent = [tp for tp in partitions if tp not in committed]
    found = {tp: committed[tp] for tp in partitions if tp in committed}
    return found | (source.latest(absent) if absent else {})


_PLANNERS = {
    Scenario.TO_OFFSET: _to_offset,
    Scenario.TO_EARLIEST: _to_earliest,
    Scenario.TO_LATEST: _to_latest,
    Scenario.SHIFT_BY: _shift_by,
    Scenario.TO_DATETIME: _to_time,
    Scenario.BY_DURATION: _to_time,
    Scenario.FROM_FILE: _from_file,
    Scenario.TO_CURRENT: _to_current,
}


def _clamped(wanted: Offsets, source: OffsetSource, warn: Warn) -> Offsets:
    """Offsets within their logs; what had to be moved is told."""
    earliest, latest = source.earliest(wanted), source.latest(wanted)
    found: Offsets = {}
    for tp, offset in wanted.items():
        found[tp] = min(max(offset, earliest[tp]), latest[tp])
        if offset > latest[tp]:
            warn(_moved(tp, offset, "higher than latest", found[tp]))
        elif offset < earliest[tp]:
            warn(_moved(tp, offset, "lower than earliest", found[tp]))
    return found


def _moved(tp: TopicPartition, wanted: int, how: str, offset: int) -> str:
    return (
        f"WARN New offset ({wanted}) is {how} offset for topic partition {tp}. Value will be set to"
        f" {offset}"
    )

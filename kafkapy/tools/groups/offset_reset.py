"""Plans the offsets of `consumer-groups --reset-offsets`: scope, scenario, plan.

Pure decisions. Offsets come from an `OffsetSource`, so that tests need no broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from kafkapy.common.comma_separated import java_split
from kafkapy.common.errors import ConfigError
from kafkapy.common.java_numbers import is_natural
from kafkapy.common.topic_partition import TopicPartition

Offsets = dict[TopicPartition, int]
Warn = Callable[[str], None]


class Scenario(StrEnum):
    """The scenarios by their options, in the order in which Kafka's tool checks them."""

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
    """The offsets of a cluster's partitions. An unknown partition raises ApiError."""

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Log start offsets."""

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Log end offsets."""

    def at(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> Offsets:
        """The first offset at or after a time; -1 if no record is at or after it."""


def parse_topic_scope(word: str) -> TopicScope:
    """Parse one `--topic`.

    Raises:
        ConfigError: the word is malformed; with the text of
            `ConsumerGroupCommand.parseTopicsWithPartitions`.
    """
    topic, colon, numbers = word.partition(":")
    if not colon:
        return TopicScope(topic, None)
    if not numbers or ":" in numbers or not topic:
        raise ConfigError(f"Invalid topic arg '{word}', expected topic name and partitions")
    partitions = []
    for number in java_split(numbers):
        if not is_natural(number):
            raise ConfigError(f"Invalid partition '{number}' specified in topic arg '{word}''")
        partitions.append(int(number))
    return TopicScope(topic, tuple(partitions))


def expand(
    scopes: Sequence[TopicScope], partitions_of: Callable[[str], Iterable[int]]
) -> list[TopicPartition]:
    """The partitions of scopes, each once. `partitions_of` returns all partitions of a topic."""
    found: dict[TopicPartition, None] = {}
    for topic, partitions in scopes:
        chosen = partitions_of(topic) if partitions is None else partitions
        found.update((TopicPartition(topic, partition), None) for partition in chosen)
    return list(found)


class _PlanInput(NamedTuple):
    """The input of a planner; see `plan`."""

    reset: Reset
    partitions: Sequence[TopicPartition]
    committed: Mapping[TopicPartition, int]
    source: OffsetSource
    warn: Warn

    def clamp(self, wanted: Offsets) -> Offsets:
        """Limit offsets to their logs. Logs a warning for each change."""
        earliest, latest = self.source.earliest(wanted), self.source.latest(wanted)
        clamped: Offsets = {}
        for tp, offset in wanted.items():
            clamped[tp] = min(max(offset, earliest[tp]), latest[tp])
            if offset > latest[tp]:
                self.warn(_clamp_warning(tp, offset, "higher than latest", clamped[tp]))
            elif offset < earliest[tp]:
                self.warn(_clamp_warning(tp, offset, "lower than earliest", clamped[tp]))
        return clamped


def plan(
    reset: Reset,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    source: OffsetSource,
    warn: Warn,
) -> Offsets:
    """The new offset of each partition, sorted by topic and partition.

    Raises:
        ConfigError: a partition to shift has no committed offset.
        ApiError: the cluster does not return the offsets.
    """
    plan_input = _PlanInput(reset, partitions, committed, source, warn)
    return dict(sorted(_PLANNERS[reset.scenario](plan_input).items()))


def _to_offset(plan_input: _PlanInput) -> Offsets:
    return plan_input.clamp(dict.fromkeys(plan_input.partitions, plan_input.reset.value))


def _to_earliest(plan_input: _PlanInput) -> Offsets:
    return plan_input.source.earliest(plan_input.partitions)


def _to_latest(plan_input: _PlanInput) -> Offsets:
    return plan_input.source.latest(plan_input.partitions)


def _shift_by(plan_input: _PlanInput) -> Offsets:
    for partition in plan_input.partitions:
        if partition not in plan_input.committed:
            raise ConfigError(
                f"Cannot shift offset for partition {partition} since there is no current committed"
                " offset"
            )
    return plan_input.clamp(
        {tp: plan_input.committed[tp] + plan_input.reset.value for tp in plan_input.partitions}
    )


def _to_time(plan_input: _PlanInput) -> Offsets:
    found = plan_input.source.at(plan_input.partitions, plan_input.reset.value)
    empty = [tp for tp in plan_input.partitions if found[tp] < 0]
    for tp in empty:
        plan_input.warn(
            f"\nWarn: Partition {tp.partition} from topic {tp.topic} is empty. Falling back to"
            " latest known offset."
        )
    return found | (plan_input.source.latest(empty) if empty else {})


def _from_file(plan_input: _PlanInput) -> Offsets:
    return plan_input.clamp(dict(plan_input.reset.offsets or {}))


def _to_current(plan_input: _PlanInput) -> Offsets:
    absent = [tp for tp in plan_input.partitions if tp not in plan_input.committed]
    found = {
        tp: plan_input.committed[tp] for tp in plan_input.partitions if tp in plan_input.committed
    }
    return found | (plan_input.source.latest(absent) if absent else {})


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


def _clamp_warning(tp: TopicPartition, wanted: int, relation: str, offset: int) -> str:
    return (
        f"WARN New offset ({wanted}) is {relation} offset for topic partition {tp}. Value will be"
        f" set to {offset}"
    )

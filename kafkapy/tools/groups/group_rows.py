"""Rows of `consumer-groups --describe`: the partitions of each member, and unassigned ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkapy.admin.groups import GroupDescription, GroupMember
from kafkapy.common.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupOffsetRow:
    """One partition of a group. None means "unknown" or "no member"."""

    partition: TopicPartition
    current_offset: int | None
    log_end_offset: int | None
    consumer_id: str | None = None
    host: str | None = None
    client_id: str | None = None

    @property
    def lag(self) -> int | None:
        """The number of records between the committed offset and the end; negative if the log was
        truncated or replaced.
        """
        if self.current_offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.current_offset


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One member; epochs and target are those of the consumer protocol."""

    consumer_id: str
    instance_id: str | None
    host: str
    client_id: str
    assignment: tuple[TopicPartition, ...]
    epoch: int | None = None
    target_epoch: int | None = None
    target: tuple[TopicPartition, ...] = ()


def partitions_of(
    group: GroupDescription, committed: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Every partition that is assigned or has a committed offset."""
    owned = (tp for member in group.members for tp in member.assignment)
    return sorted({*owned, *committed})


def offset_rows(
    group: GroupDescription,
    committed: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> list[GroupOffsetRow]:
    """Members with the most partitions first, each with its partitions in order; then committed
    offsets of unassigned partitions.
    """
    rows = [
        GroupOffsetRow(
            tp,
            committed.get(tp),
            ends.get(tp),
            member.member_id,
            member.host or None,
            member.client_id or None,
        )
        for member in _busiest_first(group.members)
        for tp in sorted(member.assignment)
    ]
    owned = {row.partition for row in rows}
    return rows + [
        GroupOffsetRow(tp, offset, ends.get(tp))
        for tp, offset in sorted(committed.items())
        if tp not in owned
    ]


def member_rows(group: GroupDescription) -> list[MemberRow]:
    """Members with the most partitions first."""
    return [
        MemberRow(
            m.member_id,
            m.instance_id,
            m.host,
            m.client_id,
            tuple(sorted(m.assignment)),
            m.epoch,
            group.target_epoch,
            tuple(sorted(m.target)),
        )
        for m in _busiest_first(group.members)
    ]


def _busiest_first(members: Iterable[GroupMember]) -> list[GroupMember]:
    return sorted(members, key=lambda member: (-len(member.assignment), member.member_id))

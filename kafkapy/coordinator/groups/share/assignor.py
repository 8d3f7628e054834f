"""The assignor `simple`: partitions get enough members for every member to have a partition.

Topics with the same subscribers are assigned together. Each of their partitions gets the number of
members divided by the number of partitions, rounded up. The members' numbers of partitions differ
by one at most. Members keep their previous partitions. Kafka: `SimpleAssignor`.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.groups.consumer.assignment import (
    Assignment,
    TopicIdPartition,
    assignment_of,
    partitions_of,
)
from kafkapy.coordinator.groups.consumer.assignors import Members


def assign_shares(members: Members, partitions: Assignment) -> dict[str, Assignment]:
    """Assignments by member id; `partitions` are those that may be assigned."""
    held: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in members}
    for subscribers, topics in _classes(members, partitions).items():
        found = {TopicIdPartition(t, index) for t in topics for index in partitions[t]}
        _share(held, members, subscribers, sorted(found))
    return {member_id: assignment_of(mine) for member_id, mine in held.items()}


def _classes(
    members: Members, partitions: Mapping[Uuid, object]
) -> dict[tuple[str, ...], list[Uuid]]:
    """Topics by their subscribers."""
    classes: dict[tuple[str, ...], list[Uuid]] = {}
    for topic_id in sorted(partitions):
        subscribers = tuple(sorted(m for m, each in members.items() if topic_id in each.topics))
        if subscribers:
            classes.setdefault(subscribers, []).append(topic_id)
    return classes


def _share(
    held: dict[str, set[TopicIdPartition]],
    members: Members,
    subscribers: tuple[str, ...],
    partitions: list[TopicIdPartition],
) -> None:
    if not partitions:
        return
    sharing = -(-len(subscribers) // len(partitions))
    quota, extra = divmod(sharing * len(partitions), len(subscribers))
    room = dict.fromkeys(partitions, sharing)
    mine: dict[str, list[TopicIdPartition]] = {}
    for member_id in sorted(subscribers, key=lambda m: (-len(members[m].previous), m)):
        kept = [p for p in sorted(partitions_of(members[member_id].previous)) if room.get(p, 0)]
        mine[member_id] = kept[: quota + (extra > 0)]
        extra -= len(mine[member_id]) > quota
        for partition in mine[member_id]:
            room[partition] -= 1
    for member_id in subscribers:
        wanted = quota + (extra > 0 and len(mine[member_id]) <= quota) - len(mine[member_id])
        extra -= wanted > quota - len(mine[member_id])
        free = [p for p in partitions if p not in mine[member_id]]
        for partition in sorted(free, key=lambda p: -room[p])[: max(wanted, 0)]:
            mine[member_id].append(partition)
            room[partition] -= 1
        held[member_id].update(mine[member_id])

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
    assignments: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in members}
    for subscribers, topics in _topics_by_subscribers(members, partitions).items():
        found = {TopicIdPartition(t, index) for t in topics for index in partitions[t]}
        _assign_to_subscribers(assignments, members, subscribers, sorted(found))
    return {member_id: assignment_of(assigned) for member_id, assigned in assignments.items()}


def _topics_by_subscribers(
    members: Members, partitions: Mapping[Uuid, object]
) -> dict[tuple[str, ...], list[Uuid]]:
    """Topics by their subscribers."""
    by_subscribers: dict[tuple[str, ...], list[Uuid]] = {}
    for topic_id in sorted(partitions):
        subscribers = tuple(sorted(m for m, each in members.items() if topic_id in each.topics))
        if subscribers:
            by_subscribers.setdefault(subscribers, []).append(topic_id)
    return by_subscribers


def _assign_to_subscribers(
    assignments: dict[str, set[TopicIdPartition]],
    members: Members,
    subscribers: tuple[str, ...],
    partitions: list[TopicIdPartition],
) -> None:
    if not partitions:
        return
    members_per_partition = -(-len(subscribers) // len(partitions))
    quota, extra = divmod(members_per_partition * len(partitions), len(subscribers))
    free_slots = dict.fromkeys(partitions, members_per_partition)
    assigned: dict[str, set[TopicIdPartition]] = {}
    for member_id in sorted(subscribers, key=lambda m: (-len(members[m].previous), m)):
        kept = [
            p for p in sorted(partitions_of(members[member_id].previous)) if free_slots.get(p, 0)
        ]
        assigned[member_id] = {*kept[: quota + (extra > 0)]}
        extra -= len(assigned[member_id]) > quota
        for partition in assigned[member_id]:
            free_slots[partition] -= 1
    for member_id in subscribers:
        wanted = (
            quota + (extra > 0 and len(assigned[member_id]) <= quota) - len(assigned[member_id])
        )
        extra -= wanted > quota - len(assigned[member_id])
        if wanted > 0:
            free = [p for p in partitions if p not in assigned[member_id]]
            for partition in sorted(free, key=lambda p: -free_slots[p])[:wanted]:
                assigned[member_id].add(partition)
                free_slots[partition] -= 1
        assignments[member_id].update(assigned[member_id])

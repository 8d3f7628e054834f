"""Server-side assignors: `uniform` balances all partitions, `range` balances each topic.

Members keep the partitions of their previous target as far as the balance allows. Members are
visited in a fixed order, so that every coordinator computes the same target from the same records.
Kafka: `UniformAssignor` and `RangeAssignor` (neither uses racks).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.groups.consumer.assignment import (
    EMPTY_ASSIGNMENT,
    Assignment,
    TopicIdPartition,
    assignment_of,
    partitions_of,
)

UNIFORM: Final = "uniform"
RANGE: Final = "range"


class AssignedMember(NamedTuple):
    """The input of an assignor for one member: `topics` are ids of topics that exist."""

    instance_id: str | None
    topics: frozenset[Uuid]
    previous: Assignment = EMPTY_ASSIGNMENT


Members: TypeAlias = Mapping[str, AssignedMember]
Assignor: TypeAlias = Callable[[Members, Mapping[Uuid, int]], dict[str, Assignment]]
"""Computes the assignments by member id, from the members by id and the partition counts by topic
id."""


def _sorted_members(members: Members) -> list[str]:
    """Static members first, by instance id: their member ids change when they restart."""

    def rank(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(members, key=rank)


def assign_uniformly(members: Members, counts: Mapping[Uuid, int]) -> dict[str, Assignment]:
    """Give members partitions so that sizes differ by one at most, where subscriptions allow it."""
    assignments = _kept_assignments(members, counts)
    topics = {member.topics for member in members.values()}
    if len(topics) <= 1:
        _fill_quotas(
            assignments, {t: counts[t] for subscribed in topics for t in sorted(subscribed)}
        )
        return assignments
    partitions = {member_id: {*partitions_of(owned)} for member_id, owned in assignments.items()}
    _fill_subscribed(partitions, members, counts)
    return {member_id: assignment_of(owned) for member_id, owned in partitions.items()}


def _kept_assignments(members: Members, counts: Mapping[Uuid, int]) -> dict[str, Assignment]:
    """The part of each member's previous target that still exists, each partition once."""
    assignments: dict[str, Assignment] = {}
    taken: dict[Uuid, set[int]] = {}
    for member_id in _sorted_members(members):
        member = members[member_id]
        owned = {}
        for topic_id in member.topics & member.previous.keys():
            indexes, others = member.previous[topic_id], taken.setdefault(topic_id, set())
            if max(indexes) >= counts[topic_id] or not others.isdisjoint(indexes):
                indexes = indexes.difference(others, range(counts[topic_id], max(indexes) + 1))
            if indexes:
                owned[topic_id] = indexes
                others |= indexes
        assignments[member_id] = owned
    return assignments


def _fill_quotas(assignments: dict[str, Assignment], counts: Mapping[Uuid, int]) -> None:
    """Assign the partitions of topics that all members subscribe to. The members with most
    partitions get the larger quota. A member within its quota keeps its assignment object; in a
    large group, most members do."""
    if not assignments:
        return
    sizes = {m: sum(len(indexes) for indexes in owned.values()) for m, owned in assignments.items()}
    quota, extra = divmod(sum(counts.values()), len(assignments))
    quotas: dict[str, int] = {}
    for number, member_id in enumerate(sorted(assignments, key=lambda each: -sizes[each])):
        quotas[member_id] = quota + (number < extra)
        if sizes[member_id] > quotas[member_id]:
            owned = sorted(partitions_of(assignments[member_id]))
            assignments[member_id] = assignment_of({*owned[: quotas[member_id]]})
    taken: dict[Uuid, set[int]] = {topic_id: set() for topic_id in counts}
    for assignment in assignments.values():
        for topic_id, indexes in assignment.items():
            taken[topic_id] |= indexes
    free = (
        TopicIdPartition(topic_id, index)
        for topic_id, count in counts.items()
        for index in range(count)
        if index not in taken[topic_id]
    )
    for member_id, assignment in assignments.items():
        if sizes[member_id] < quotas[member_id]:
            more = islice(free, quotas[member_id] - sizes[member_id])
            assignments[member_id] = assignment_of({*partitions_of(assignment), *more})


_Partitions: TypeAlias = dict[str, set[TopicIdPartition]]
"""Partitions by member id."""


def _fill_subscribed(
    assignments: _Partitions, members: Members, counts: Mapping[Uuid, int]
) -> None:
    """Assign partitions to members with different subscriptions. Each free partition goes to the
    subscriber with fewest partitions. Then partitions move as long as that evens out the sizes."""
    subscribers = _subscribers(members)
    taken = {partition for owned in assignments.values() for partition in owned}
    # Topics with few subscribers come first: their partitions have the fewest candidates.
    for topic_id in sorted(subscribers, key=lambda t: (len(subscribers[t]), t)):
        heap = [(len(assignments[m]), number, m) for number, m in enumerate(subscribers[topic_id])]
        heapq.heapify(heap)
        for index in range(counts[topic_id]):
            partition = TopicIdPartition(topic_id, index)
            if partition not in taken:
                size, number, member_id = heapq.heappop(heap)
                assignments[member_id].add(partition)
                heapq.heappush(heap, (size + 1, number, member_id))
    _balance(assignments, subscribers)


def _subscribers(members: Members) -> dict[Uuid, list[str]]:
    subscribers: dict[Uuid, list[str]] = {}
    for member_id in _sorted_members(members):
        for topic_id in members[member_id].topics:
            subscribers.setdefault(topic_id, []).append(member_id)
    return subscribers


def _balance(assignments: _Partitions, subscribers: Mapping[Uuid, list[str]]) -> None:
    """Move partitions from larger to smaller members. Each move lowers the sum of the squared
    sizes, so the loop ends."""
    smallest: dict[Uuid, str] = {}  # subscriber by topic, until the next move
    moved = True
    while moved:
        moved = False
        for owner in sorted(assignments, key=lambda each: -len(assignments[each])):
            for partition in sorted(assignments[owner]):
                topic_id = partition.topic_id
                if topic_id not in smallest:
                    smallest[topic_id] = min(
                        subscribers[topic_id], key=lambda each: len(assignments[each])
                    )
                other = smallest[topic_id]
                if len(assignments[owner]) > len(assignments[other]) + 1:
                    assignments[owner].remove(partition)
                    assignments[other].add(partition)
                    smallest.clear()
                    moved = True


def assign_ranges(members: Members, counts: Mapping[Uuid, int]) -> dict[str, Assignment]:
    """Divide each topic's partitions among its subscribers, so that counts differ by one at most.
    Members of a new group get ranges, and the same ranges in topics with the same number of
    partitions."""
    assignments: dict[str, dict[Uuid, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic_id, subscribers in sorted(_subscribers(members).items()):
        by_member = _divide_topic(members, topic_id, subscribers, counts[topic_id])
        for member_id, indexes in by_member.items():
            if indexes:
                assignments[member_id][topic_id] = frozenset(indexes)
    return {**assignments}


def _divide_topic(
    members: Members, topic_id: Uuid, subscribers: Sequence[str], count: int
) -> dict[str, set[int]]:
    quota, extra = divmod(count, len(subscribers))
    by_member: dict[str, set[int]] = {}
    taken: set[int] = set()
    for member_id in subscribers:
        previous = members[member_id].previous.get(topic_id, frozenset())
        owned = sorted(index for index in previous - taken if index < count)
        kept_count = quota
        if len(owned) > quota and extra:
            kept_count += 1
            extra -= 1
        by_member[member_id] = set(owned[:kept_count])
        taken |= by_member[member_id]
    free = iter([index for index in range(count) if index not in taken])
    for member_id in subscribers:
        indexes = by_member[member_id]
        wanted = quota - len(indexes)
        if wanted >= 0 and extra:
            wanted += 1
            extra -= 1
        indexes.update(next(free) for _ in range(wanted))
    return by_member


ASSIGNORS: Final[Mapping[str, Assignor]] = {UNIFORM: assign_uniformly, RANGE: assign_ranges}

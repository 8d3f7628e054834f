"""Assignments: the partitions of a member, by topic id."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.groups.topic_source import TopicSource

Assignment: TypeAlias = Mapping[Uuid, frozenset[int]]
"""Partitions by topic id. Never changed; no topic has an empty set."""

EMPTY_ASSIGNMENT: Final[Assignment] = MappingProxyType({})


class TopicIdPartition(NamedTuple):
    """One partition of the topic with an id."""

    topic_id: Uuid
    partition: int


def partitions_of(assignment: Assignment) -> Iterator[TopicIdPartition]:
    """Each partition of an assignment."""
    for topic_id, indexes in assignment.items():
        for index in indexes:
            yield TopicIdPartition(topic_id, index)


def assignment_of(partitions: set[TopicIdPartition]) -> Assignment:
    """The assignment of these partitions."""
    by_topic: dict[Uuid, set[int]] = {}
    for topic_id, index in partitions:
        by_topic.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in by_topic.items()}


def by_topic_name(topics: TopicSource, assignment: Assignment) -> dict[str, frozenset[int]]:
    """The assignment by topic name, without deleted topics."""
    names = {topic_id: topics.name_of(topic_id) for topic_id in assignment}
    return {name: assignment[t] for t, name in names.items() if name is not None}


def by_topic_id(topics: TopicSource, partitions: Collection[TopicPartition]) -> Assignment:
    """The assignment of these partitions by topic id, without deleted topics."""
    known = {name: topics.find(name) for name in {each.topic for each in partitions}}
    ids = {name: found.topic_id for name, found in known.items() if found is not None}
    return assignment_of({TopicIdPartition(ids[t], index) for t, index in partitions if t in ids})


def is_subset(part: Assignment, whole: Assignment) -> bool:
    """Whether `whole` has every partition of `part`."""
    return all(indexes <= whole.get(topic_id, frozenset()) for topic_id, indexes in part.items())


def overlap(one: Assignment, other: Assignment) -> bool:
    """Whether two assignments have a partition in common."""
    return any(not indexes.isdisjoint(other.get(t, ())) for t, indexes in one.items())

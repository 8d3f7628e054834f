"""The server-side assignors: balanced, sticky, and the same wherever they run."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from copy import deepcopy

import pytest

from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.groups.consumer import assignors
from kafkapy.coordinator.groups.consumer.assignment import (
    Assignment,
    TopicIdPartition,
    partitions_of,
)
from kafkapy.coordinator.groups.consumer.assignors import (
    ASSIGNORS,
    RANGE,
    UNIFORM,
    AssignedMember,
    Members,
    assign_ranges,
    assign_uniformly,
)
from tests.harness.cores.consumer_shell import topic_id

A, B, C = topic_id(1), topic_id(2), topic_id(3)


def members(*topics: set[Uuid], previous: dict[str, Assignment] | None = None) -> Members:
    """Members m0, m1 ..., each with its topics."""
    before = previous or {}
    return {
        f"m{n}": AssignedMember(None, frozenset(each), before.get(f"m{n}", {}))
        for n, each in enumerate(topics)
    }


def sizes(target: dict[str, Assignment]) -> list[int]:
    return sorted(sum(map(len, each.values())) for each in target.values())


def moved(before: dict[str, Assignment], after: dict[str, Assignment]) -> int:
    """Partitions that a member of both had, and has no more."""
    kept = before.keys() & after.keys()
    return sum(len({*partitions_of(before[m])} - {*partitions_of(after[m])}) for m in kept)


def test_uniform_gives_each_member_as_many() -> None:
    target = assign_uniformly(members({A, B}, {A, B}, {A, B}), {A: 4, B: 4})
    assert sizes(target) == [2, 3, 3]


def test_uniform_moves_only_what_a_new_member_gets() -> None:
    two = assign_uniformly(members({A}, {A}), {A: 6})
    three = assign_uniformly(members({A}, {A}, {A}, previous=two), {A: 6})
    assert sizes(three) == [2, 2, 2]
    assert moved(two, three) == 2


def test_uniform_leaves_the_larger_share_with_whoever_has_it() -> None:
    before: dict[str, Assignment] = {
        "m0": {A: frozenset({0, 1, 2})},
        "m1": {A: frozenset({3, 4, 5, 6})},
    }
    assert assign_uniformly(members({A}, {A}, previous=before), {A: 7}) == before


def test_uniform_gives_what_a_member_had_to_the_others() -> None:
    three = assign_uniformly(members({A}, {A}, {A}), {A: 6})
    two = assign_uniformly(members({A}, {A}, previous=three), {A: 6})
    assert sizes(two) == [3, 3]
    assert moved(three, two) == 0


def test_uniform_takes_partitions_of_deleted_topics_away() -> None:
    before: dict[str, Assignment] = {"m0": {A: frozenset({0}), B: frozenset({0, 1})}}
    target = assign_uniformly(members({A}, previous=before), {A: 2})
    assert target == {"m0": {A: frozenset({0, 1})}}


def test_uniform_balances_different_subscriptions() -> None:
    target = assign_uniformly(members({A, B}, {A}, {B, C}), {A: 2, B: 2, C: 2})
    assert sizes(target) == [2, 2, 2]
    assert set(target["m1"]) <= {A}
    assert set(target["m2"]) <= {B, C}


def test_uniform_evens_out_what_was_uneven() -> None:
    before: dict[str, Assignment] = {"m0": {A: frozenset(range(6))}}
    target = assign_uniformly(members({A}, {A, B}, previous=before), {A: 6, B: 0})
    assert sizes(target) == [3, 3]
    assert moved(before, target) == 3


def test_range_gives_ranges_and_the_same_ones_of_like_topics() -> None:
    target = assign_ranges(members({A, B}, {A, B}), {A: 3, B: 3})
    assert target == {
        "m0": {A: frozenset({0, 1}), B: frozenset({0, 1})},
        "m1": {A: frozenset({2}), B: frozenset({2})},
    }


def test_range_is_sticky() -> None:
    two = assign_ranges(members({A}, {A}), {A: 4})
    three = assign_ranges(members({A}, {A}, {A}, previous=two), {A: 4})
    assert sizes(three) == [1, 1, 2]
    assert moved(two, three) == 1


def test_range_with_more_members_than_partitions() -> None:
    target = assign_ranges(members({A}, {A}, {A}), {A: 2})
    assert sizes(target) == [0, 1, 1]


@pytest.mark.parametrize("name", [UNIFORM, RANGE])
def test_static_members_keep_their_place_when_their_member_ids_change(name: str) -> None:
    def target(ids: tuple[str, str]) -> list[Assignment]:
        group = {m: AssignedMember(f"i{n}", frozenset({A})) for n, m in enumerate(ids)}
        found = ASSIGNORS[name](group, {A: 3})
        return [found[m] for m in ids]

    assert target(("x", "y")) == target(("y", "x"))


@pytest.mark.parametrize("name", [UNIFORM, RANGE])
@pytest.mark.parametrize("seed", range(40))
def test_every_partition_has_one_owner_who_wants_it(name: str, seed: int) -> None:
    """Members and topics come and go: nothing is given twice, nothing is left, what stays equal
    stays where it is."""
    chance = random.Random(seed)
    target: dict[str, Assignment] = {}
    for _ in range(12):
        counts = {topic: chance.randrange(7) for topic in (A, B, C)}
        topics = [*counts]
        group = {
            f"m{n}": AssignedMember(
                None,
                frozenset(topics if seed % 2 else chance.sample(topics, chance.randrange(4))),
                target.get(f"m{n}", {}),
            )
            for n in chance.sample(range(8), chance.randrange(1, 8))
        }
        target = ASSIGNORS[name](group, counts)
        given = [p for assignment in target.values() for p in partitions_of(assignment)]
        wanted = {topic for member in group.values() for topic in member.topics}
        assert sorted(given) == sorted(
            (topic, index) for topic in wanted for index in range(counts[topic])
        )
        assert all(set(target[m]) <= group[m].topics for m in group)
        again = {m: group[m]._replace(previous=target[m]) for m in group}
        assert ASSIGNORS[name](again, counts) == target
        if name == UNIFORM and len({m.topics for m in group.values()}) == 1:
            assert sizes(target)[-1] - sizes(target)[0] <= 1


def balance_simply(
    assignments: dict[str, set[TopicIdPartition]], subscribers: Mapping[Uuid, list[str]]
) -> None:
    """The definition of the balance: it searches the smallest subscriber for each partition."""
    moved = True
    while moved:
        moved = False
        for owner in sorted(assignments, key=lambda each: -len(assignments[each])):
            for partition in sorted(assignments[owner]):
                others = subscribers[partition.topic_id]
                smallest = min(others, key=lambda each: len(assignments[each]))
                if len(assignments[owner]) > len(assignments[smallest]) + 1:
                    assignments[owner].remove(partition)
                    assignments[smallest].add(partition)
                    moved = True


@pytest.mark.parametrize("seed", range(100))
def test_the_balance_is_that_of_a_simple_search(seed: int) -> None:
    generator = random.Random(seed)
    names = [f"m{number}" for number in range(generator.randint(1, 8))]
    subscribers, owned = {}, {name: set[TopicIdPartition]() for name in names}
    for topic in map(topic_id, range(generator.randint(1, 6))):
        subscribers[topic] = generator.sample(names, generator.randint(1, len(names)))
        for index in range(generator.randint(0, 9)):
            owner = generator.choice(subscribers[topic])
            owned[owner].add(TopicIdPartition(topic, index))
    expected = deepcopy(owned)
    balance_simply(expected, subscribers)
    assignors._balance(owned, subscribers)
    assert owned == expected


class CountedList(list[str]):
    """Subscribers that are searched."""

    searches = 0

    def __iter__(self) -> Iterator[str]:
        self.searches += 1
        return super().__iter__()


def test_the_subscribers_of_a_topic_are_searched_again_after_a_move_only() -> None:
    subscribers = {A: CountedList(["m0", "m1"]), B: CountedList(["m1"])}
    owned = {
        "m0": {TopicIdPartition(A, index) for index in range(100)},
        "m1": {TopicIdPartition(B, index) for index in range(99)},
    }
    assignors._balance(owned, subscribers)
    assert [each.searches for each in subscribers.values()] == [1, 1]
    owned["m1"].remove(TopicIdPartition(B, 0))
    assignors._balance(owned, subscribers)
    assert len(owned["m1"]) == 99
    assert max(each.searches for each in subscribers.values()) < 6

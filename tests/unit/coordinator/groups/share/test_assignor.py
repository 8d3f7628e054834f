"""The assignor `simple`: every partition is assigned, everybody has a share, and keeps it."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from kafkapy.coordinator.groups.consumer.assignment import Assignment, partitions_of
from kafkapy.coordinator.groups.consumer.assignors import AssignedMember
from kafkapy.coordinator.groups.share.assignor import assign_shares
from tests.harness.cores.consumer_shell import topic_id

T, U = topic_id(1), topic_id(2)


def members(count: int, *topics: bytes) -> dict[str, AssignedMember]:
    member = AssignedMember(None, frozenset(topics))  # type: ignore[arg-type]
    return {f"m{number}": member for number in range(count)}


@pytest.mark.parametrize(("people", "partitions"), [(1, 3), (2, 3), (3, 3), (4, 3), (7, 3), (9, 1)])
def test_shares(people: int, partitions: int) -> None:
    topics: Assignment = {T: frozenset(range(partitions))}
    found = assign_shares(members(people, T), topics)
    sizes = Counter(len([*partitions_of(mine)]) for mine in found.values())
    shared = Counter(p for mine in found.values() for p in partitions_of(mine))
    assert len(shared) == partitions
    assert set(shared.values()) == {-(-people // partitions)}
    assert max(sizes) - min(sizes) <= 1


def test_nobody_loses_more_than_the_balance_takes() -> None:
    random = Random(1)
    topics: Assignment = {T: frozenset(range(8)), U: frozenset(range(3))}
    known = members(4, T, U)
    for _ in range(50):
        found = assign_shares(known, topics)
        known = {name: known[name]._replace(previous=found[name]) for name in known}
        assert assign_shares(known, topics) == found
        name = random.choice(sorted(known))
        others = {each: member for each, member in known.items() if each != name}
        after = assign_shares(others, topics)
        lost = [p for o in others for p in {*partitions_of(found[o])} - {*partitions_of(after[o])}]
        assert not lost
        known = {**others, f"{name}x": AssignedMember(None, frozenset({T, U}))}


def test_subscriptions_differ() -> None:
    people = {**members(2, T), "u": AssignedMember(None, frozenset({U}))}
    found = assign_shares(people, {T: frozenset({0, 1}), U: frozenset({0})})
    assert found["u"] == {U: frozenset({0})}
    assert sorted(found[name][T] for name in ("m0", "m1")) == [{0}, {1}]
    assert assign_shares(people, {}) == {"m0": {}, "m1": {}, "u": {}}


class CountedIndex(int):
    """A partition index that counts how often it is hashed or compared."""

    calls = 0

    def __hash__(self) -> int:
        CountedIndex.calls += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        CountedIndex.calls += 1
        return super().__eq__(other)


def test_members_that_keep_their_partitions_cost_little() -> None:
    """Each one was compared with every partition."""
    count = 300
    topics: Assignment = {T: frozenset(map(CountedIndex, range(count)))}
    known = members(count, T)
    found = assign_shares(known, topics)
    known = {name: known[name]._replace(previous=found[name]) for name in known}
    CountedIndex.calls = 0
    assert assign_shares(known, topics) == found
    assert CountedIndex.calls < count * 50, "not the square"

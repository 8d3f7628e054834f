"""Rack-aware assignment: limits of replicas a rack, surplus replicas, and moves."""

from __future__ import annotations

from kafkapy.admin.planning.rack_spread import RackSpread
from tests.harness.cores.assignments import brokers

EVEN = RackSpread(brokers(1, 2, 3, 4, 5, 6, racks="aabbcc"))
UNEVEN = RackSpread(brokers(1, 2, 3, 4, racks="abbb"))
PLAIN = RackSpread(brokers(1, 2, 3))


def test_a_rack_holds_no_more_than_it_must() -> None:
    assert [EVEN.limit(n) for n in (1, 2, 3, 4, 5, 6)] == [1, 1, 1, 2, 2, 2]
    assert [UNEVEN.limit(n) for n in (2, 3, 4)] == [1, 2, 3]
    assert PLAIN.limit(3) == 3


def test_rigid_is_what_fills_every_rack_to_its_limit() -> None:
    assert [EVEN.is_rigid(n) for n in (2, 3, 4, 6)] == [False, True, False, True]


def test_the_surplus_of_a_rack_leaves_the_last_listed_first() -> None:
    assert EVEN.surplus([1, 3, 5], 3) == []
    assert EVEN.surplus([1, 2, 3], 3) == [2]
    assert EVEN.surplus([1, 2], 3) == [2]
    assert EVEN.surplus([1, 2, 3, 4], 4) == [4]
    assert PLAIN.surplus([1, 2, 3], 3) == []


def test_the_next_replica_belongs_where_there_are_fewest() -> None:
    assert EVEN.open_racks([1, 3]) == ["c"]
    assert EVEN.open_racks([1, 3, 5]) == ["a", "b", "c"]
    assert UNEVEN.open_racks([1, 2]) == ["b"]


def test_a_move_keeps_the_spread() -> None:
    assert EVEN.may_move([1, 3], 2, 1, 2)
    assert EVEN.may_move([1, 3], 2, 1, 5)
    assert not EVEN.may_move([1, 3], 2, 1, 4)
    assert not EVEN.may_move([1, 3, 5], 3, 1, 4)
    assert EVEN.may_move([1, 2, 3, 5], 4, 2, 4)
    assert not EVEN.may_move([1, 2, 3, 5], 4, 3, 6)
